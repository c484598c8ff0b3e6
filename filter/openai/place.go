package openai

// place is the container of the request the scanner is in. Containers inside
// of a value that counts by its digest have no place of their own.
type place uint8

const (
	atRoot     place = iota
	inBody           // {...}
	inOptions        // {"stream_options": {...}}
	inMessages       // {"messages": [...]}
	inMessage        // {"messages": [{...}]}
	inContent        // {"messages": [{"content": [...]}]}
	inPart           // {"messages": [{"content": [{...}]}]}
	inPrompt         // {"prompt": [...]}
	inIDs            // {"prompt": [[...]]}
)

// open enters a container, which stands where a value may stand.
func (s *Scanner) open(object bool) {
	if s.values.depth == 0 {
		if to, known := s.inner(object); known {
			s.where = to
			return
		}
	}
	s.values.open(object)
}

// inner returns the place a container has, if it has one.
func (s *Scanner) inner(object bool) (place, bool) {
	switch s.where {
	case atRoot:
		return inBody, true
	case inBody:
		return s.openMember(object)
	case inMessages:
		s.message = 0
		return inMessage, object
	case inMessage:
		return inContent, !object && s.member == memberContent
	case inContent:
		s.part = 0
		return inPart, object
	case inPrompt:
		return inIDs, !object && s.prompt.take(formLists, s.at) && s.separate()
	}
	return 0, false
}

// close leaves a container.
func (s *Scanner) close() {
	if s.values.depth > 0 {
		if sum, kind, done := s.values.close(); done {
			s.deliver(kind, sum)
		}
		return
	}
	switch s.where {
	case inBody:
		s.where = atRoot
	case inOptions, inMessages:
		s.where = inBody
	case inMessage:
		s.endMessage()
		s.where = inMessages
	case inContent:
		s.where = inMessage
	case inPart:
		s.endPart()
		s.where = inContent
	case inPrompt:
		s.endPrompts()
		s.where = inBody
	case inIDs:
		s.border()
		s.where = inPrompt
	}
}

// beginString says what the string value that begins here is for.
func (s *Scanner) beginString() mode {
	if s.values.depth > 0 {
		return modeValue
	}
	var text bool
	switch s.where {
	case inBody:
		text = s.member == memberPrompt && s.newPrompt()
	case inMessage:
		text = s.member == memberContent
	case inContent:
		text = true
	case inPart:
		text = s.member == memberText
	case inPrompt:
		text = s.prompt.take(formStrings, s.at) && s.separate()
	}
	if text {
		return modeText
	}
	return modeValue
}

// endString ends a key or a string value that was gathered.
func (s *Scanner) endString() {
	switch {
	case s.mode != modeText:
		s.endWord(s.word.take())
	case s.where == inBody, s.where == inPrompt:
		s.state = wantNext
		s.border()
	default:
		s.state = wantNext
		if s.where != inPart {
			s.putMark(markText)
		}
	}
}

// endWord ends a string that does not go to the sink. If it is not whole, its
// hash is in s.word and w is only its end.
func (s *Scanner) endWord(w []byte, whole bool) {
	if s.mode == modeKey {
		s.state = wantColon
		s.endKey(w, whole)
		return
	}
	s.state = wantNext
	h := scalar(kindString, s.word.sum(w, whole))
	if s.values.depth > 0 {
		s.aside(s.word.length(w, whole))
		s.values.value(h)
		return
	}
	if s.where == inBody {
		s.bodyString(w, whole)
	}
	s.deliver(kindString, h)
}

func (s *Scanner) endKey(key []byte, whole bool) {
	if s.values.depth > 0 {
		s.values.key(s.word.sum(key, whole))
		return
	}
	s.member = memberOther
	if whole {
		s.member = memberOf(s.where, s.req.Kind, key)
	}
	switch {
	case s.member == memberOther, s.where != inBody:
		s.key = s.word.sum(key, whole)
	case s.member == memberTools, s.member == memberFunctions:
		s.body.toolBytes[s.member-memberTools] = 0
	}
}

func (s *Scanner) endNumber() {
	if s.values.depth == 0 && (s.where == inIDs || s.where == inPrompt && s.prompt.take(formIDs, s.at)) {
		s.putToken()
		return
	}
	s.value(kindNumber, scalar(kindNumber, s.word.sum(s.word.take())))
}

// value takes a value that is whole, or the part of one that is.
func (s *Scanner) value(k valueKind, h uint64) {
	if s.values.depth > 0 {
		s.values.value(h)
		return
	}
	s.deliver(k, h)
}

// deliver takes a whole value with its digest to the place it stands in.
func (s *Scanner) deliver(k valueKind, h uint64) {
	switch s.where {
	case inBody:
		s.bodyMember(k, h)
	case inOptions:
		if s.member == memberIncludeUsage {
			s.req.StreamIncludeUsage = k == kindTrue
		}
	case inMessages, inPrompt, inIDs:
		s.prompt.misshaped(s.at)
	case inMessage:
		if k != kindNull {
			s.message += pair(s.key, h)
		}
	case inContent:
		s.part = h
		s.endPart()
	case inPart:
		s.partMember(k, h)
	}
}
