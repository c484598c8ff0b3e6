package engine

// words are the pieces answers are made of: each begins with a space and has at
// most six bytes, so each is one token wherever it stands.
var words = [...]string{
	" able", " about", " after", " again", " air", " all", " along", " and",
	" any", " apple", " are", " ask", " at", " back", " be", " been",
	" best", " big", " blue", " boat", " book", " both", " bread", " build",
	" by", " call", " came", " can", " care", " chair", " city", " clear",
	" close", " cloud", " cold", " come", " cook", " count", " day", " deep",
	" do", " door", " down", " draw", " dry", " each", " early", " earth",
	" east", " eat", " edge", " even", " ever", " eye", " face", " fact",
	" fall", " far", " fast", " field", " find", " fire", " first", " fish",
	" five", " fly", " food", " for", " form", " free", " from", " full",
	" game", " gave", " girl", " give", " go", " gold", " good", " grass",
	" great", " green", " group", " grow", " had", " half", " hand", " has",
	" have", " head", " hear", " heat", " help", " here", " high", " hill",
	" home", " horse", " hour", " house", " how", " if", " in", " is",
	" it", " just", " keep", " kind", " king", " know", " land", " large",
	" last", " late", " laugh", " learn", " leave", " left", " less", " light",
	" like", " line", " list", " live", " long", " look", " low", " made",
}

var wordIDs = func() (ids [len(words)]Token) {
	for i, w := range words {
		ids[i] = pieceID(w)
	}
	return ids
}()

// answer is the text an engine gives to a prompt: a function of the prompt and
// the model, and of nothing else.
type answer struct {
	seed uint64
	stop int // tokens after which the answer ends by itself, end token included; 0: never
}

// newAnswer derives the answer from the prompt. An answer without a limit ends
// by itself between half of longest and longest.
func newAnswer(prompt []Token, model string, limited bool, longest int) answer {
	seed := uint64(len(prompt))
	for _, t := range prompt {
		seed = (seed ^ uint64(t)) * 0x9e3779b97f4a7c15
		seed ^= seed >> 29
	}
	for i := 0; i < len(model); i++ {
		seed = (seed ^ uint64(model[i])) * 1099511628211
	}
	a := answer{seed: mix(seed)}
	if !limited {
		half := max(longest/2, 1)
		a.stop = half + int(a.seed%uint64(longest-half+1))
	}
	return a
}

// token returns the i-th token of the answer, counted from 0, and its text. The
// last token of an answer that ends by itself is the end token, with no text.
func (a answer) token(i int) (Token, string) {
	if a.stop > 0 && i >= a.stop-1 {
		return tokenEnd, ""
	}
	k := mix(a.seed+uint64(i)) % uint64(len(words))
	return wordIDs[k], words[k]
}
