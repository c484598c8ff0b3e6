package openai

// member is a known key of the object the scanner is in.
type member uint8

const (
	memberOther member = iota

	memberModel
	memberUser
	memberStream
	memberStreamOptions
	memberMaxTokens
	memberMaxCompletion
	memberN
	memberMessages
	memberPrompt
	memberItems
	memberHead
	memberSession
	memberPrevious
	memberIgnored

	// Members that count by their digest, one slot each, from here...
	memberSalt
	memberTools
	memberFunctions
	memberTemplate
	memberTemplateArgs
	memberDocuments
	memberSpecialTokens
	memberEffort
	memberProcessor
	memberTruncate
	memberSuffix
	memberReasoning
	memberThinking
	memberOutput
	memberInstruction
	// ... to here.

	memberIncludeUsage
	memberContent
	memberStreamed // a member whose text streams as content does, and that counts by its key too
	memberAside    // a member that counts by its digest and that the engine renders
	memberText
	memberType
	memberID
)

const (
	slots         = int(memberInstruction-memberSalt) + 1
	firstTemplate = memberTemplate - memberSalt
)

// body is what is known of the members of the body. Of equal members the last
// counts.
type body struct {
	maxTokens     int64
	maxCompletion int64
	slots         [slots]uint64 // digests; 0 if absent or null
	toolBytes     [2]int64      // of tools and of functions
	previous      uint64        // digest of previous_response_id; 0 if absent or null
	rest          uint64
}

// bodyMemberOf finds the members that all dialects have, and those of chat and
// completions.
func bodyMemberOf(kind Kind, key []byte) member {
	if kind > Completions {
		if m := dialectMemberOf(kind, key); m != memberOther {
			return m
		}
	}
	switch string(key) {
	case "model":
		return memberModel
	case "user":
		return memberUser
	case "stream":
		return memberStream
	case "stream_options":
		return memberStreamOptions
	case "max_tokens":
		return memberMaxTokens
	case "max_completion_tokens":
		return memberMaxCompletion
	case "n":
		return memberN
	case "session_id":
		return memberSession
	case "messages":
		if kind == Chat {
			return memberMessages
		}
	case "prompt":
		if kind == Completions {
			return memberPrompt
		}
	default:
		return slotOf(key)
	}
	return memberOther
}

// slotOf finds the members that are part of the prompt's namespace. Those
// after the tools are the arguments with which vLLM changes how a prompt is
// rendered from its beginning on; arguments that only change its end
// (add_generation_prompt, continue_final_message) are not among them.
func slotOf(key []byte) member {
	switch string(key) {
	case "cache_salt":
		return memberSalt
	case "tools":
		return memberTools
	case "functions":
		return memberFunctions
	case "chat_template":
		return memberTemplate
	case "chat_template_kwargs":
		return memberTemplateArgs
	case "documents":
		return memberDocuments
	case "add_special_tokens":
		return memberSpecialTokens
	case "reasoning_effort":
		return memberEffort
	case "mm_processor_kwargs":
		return memberProcessor
	case "truncate_prompt_tokens":
		return memberTruncate
	case "suffix":
		return memberSuffix
	}
	return memberOther
}

// openMember enters a container that is the value of a member of the body.
func (s *Scanner) openMember(object bool) (place, bool) {
	switch {
	case s.member == memberStreamOptions && object:
		s.req.StreamIncludeUsage, s.req.OptionsEnd = false, -1
		return inOptions, true
	case (s.member == memberMessages || s.member == memberItems) && !object:
		return inMessages, s.newPrompt()
	case s.member == memberHead && !object:
		s.list = inBody
		return inContent, s.beginHead()
	case s.member == memberPrompt && !object:
		return inPrompt, s.newPrompt()
	}
	return 0, false
}

// bodyMember takes a member of the body that has no place of its own.
func (s *Scanner) bodyMember(k valueKind, h uint64) {
	r := &s.req
	switch s.member {
	case memberModel:
		r.Model.set = k == kindString
		r.ModelAt, r.ModelEnd = -1, -1
		if r.Model.set {
			r.ModelAt, r.ModelEnd = s.from, s.to
		}
	case memberUser:
		r.User.set = k == kindString
	case memberSession:
		r.Session.set = k == kindString
	case memberPrevious:
		r.Previous.set = k == kindString
		if s.body.previous = h; k == kindNull {
			s.body.previous = 0
		}
	case memberStream:
		r.Stream = k == kindTrue
	case memberStreamOptions:
		r.StreamIncludeUsage, r.OptionsEnd = false, -1
	case memberMaxTokens:
		s.body.maxTokens = s.count(k)
	case memberMaxCompletion:
		s.body.maxCompletion = s.count(k)
	case memberN:
		r.N = max(s.count(k), 1)
	case memberMessages, memberPrompt, memberItems:
		s.notAPrompt(k)
	case memberHead:
		s.oddHead(k, h)
	case memberIgnored:
	case memberOther:
		if k != kindNull {
			s.body.rest += pair(s.key, h)
		}
	default:
		if k == kindNull {
			h = 0
		}
		s.body.slots[s.member-memberSalt] = h
	}
}

// bodyString takes a string member of the body whose text matters.
func (s *Scanner) bodyString(w []byte, size int64) {
	switch s.member {
	case memberModel:
		s.req.Model.put(w, size)
	case memberUser:
		s.req.User.put(w, size)
	case memberSession:
		s.req.Session.put(w, size)
	case memberPrevious:
		s.req.Previous.put(w, size)
	}
}

// count returns the number just read as a count, -1 if it is none.
func (s *Scanner) count(k valueKind) int64 {
	if k != kindNumber {
		return -1
	}
	return s.num.count()
}

// aside counts the bytes of a string that the engine renders into the prompt
// and that reaches the sink as a digest only.
func (s *Scanner) aside(n int64) {
	nested := s.values.depth > 0
	switch {
	case s.where == inMessage && (nested || s.member == memberAside), s.where == inPart && s.member == memberAside && !s.head.open:
		s.prompt.aside += n
	case s.where == inBody && nested && (s.member == memberTools || s.member == memberFunctions):
		s.body.toolBytes[s.member-memberTools] += n
	}
}

// settle fills in what only the end of the body decides.
func (b *body) settle(r *Request) {
	r.MaxTokens = b.maxCompletion
	if r.MaxTokens < 0 {
		r.MaxTokens = b.maxTokens
	}
	r.Salt = b.slots[0]
	r.Tools = combine(b.slots[1:firstTemplate])
	r.Template = combine(b.slots[firstTemplate:])
	r.Rest = b.rest
	for _, m := range [...]member{memberDocuments, memberEffort, memberTruncate, memberSuffix} {
		r.Untold = r.Untold || b.slots[m-memberSalt] != 0
	}
	r.Untold = r.Untold || r.Kind > Completions
	r.AsideBytes = b.toolBytes[0] + b.toolBytes[1]
}

// combine makes one digest of slots, 0 if all are 0.
func combine(slots []uint64) uint64 {
	var sum uint64
	for i, h := range slots {
		if h != 0 {
			sum += pair(uint64(i)+1, h)
		}
	}
	return sum
}
