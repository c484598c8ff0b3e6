package load

import (
	"math/rand/v2"
	"strings"
)

// Shape says what conversations look like. Lengths are in words; with most tokenizers a word is a token or a little more.
type Shape struct {
	Users         int // who talk at the same time
	Conversations int // each user has, one after the other
	Turns         int // requests in a conversation
	SystemPrompts int // different ones in all; users share them
	SystemWords   int // length of each
	FirstWords    int // length of a conversation's first question: the document it is about
	FollowWords   int // length of each further question
	MaxTokens     int // cap of each answer, in tokens
}

// Conversation is what one user will ask, in order. The answers come in between when it is played.
type Conversation struct {
	System    string
	Questions []string
	MaxTokens int
}

// Script holds the conversations of each user.
type Script [][]Conversation

// NewScript writes the conversations of a shape. Equal shapes and seeds give equal scripts; another seed gives other words.
func NewScript(shape Shape, seed uint64) Script {
	dice := rand.New(rand.NewPCG(seed, 0x77a24))
	systems := make([]string, max(shape.SystemPrompts, 1))
	for i := range systems {
		systems[i] = prose(dice, shape.SystemWords)
	}
	script := make(Script, shape.Users)
	for user := range script {
		for range shape.Conversations {
			system := systems[dice.IntN(len(systems))]
			script[user] = append(script[user], converse(dice, shape, system))
		}
	}
	return script
}

// Requests counts the requests a script asks for.
func (s Script) Requests() int {
	n := 0
	for _, conversations := range s {
		for _, c := range conversations {
			n += len(c.Questions)
		}
	}
	return n
}

func converse(dice *rand.Rand, shape Shape, system string) Conversation {
	c := Conversation{System: system, MaxTokens: shape.MaxTokens}
	for turn := range shape.Turns {
		words := shape.FollowWords
		if turn == 0 {
			words = shape.FirstWords
		}
		c.Questions = append(c.Questions, prose(dice, words))
	}
	return c
}

// prose strings common words together. They are drawn independently, so no two texts share more than a few by chance.
func prose(dice *rand.Rand, words int) string {
	var text strings.Builder
	for i := range words {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(vocabulary[dice.IntN(len(vocabulary))])
	}
	return text.String()
}

var vocabulary = strings.Fields(`the of and to in is that for it as was with be by on not he his but at are this have
from or had an they which one you were all her she there would their we him been has when who will no more if out so up
said what its about than into them can only other time new some could these two may first then do any like my now over
such our man me even most made after also did many off before must well back through years much where your way down
should because long each just state those people too mister how little good world make very year still see own work men
day get here between both life being under three never know same last another while us might great go come since against
right came take used himself few house use place home during high without again around small however found part school`)
