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
	inContent        // {"messages": [{"content": [...]}]}, {"system": [...]}
	inPart           // {"messages": [{"content": [{...}]}]}, {"documents": [{...}]}
	inResult         // {"messages": [{"content": [{"content": [...]}]}]}
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
		return s.beginMessage(), object
	case inMessage:
		if !object {
			return s.openContent()
		}
	case inContent, inResult:
		s.part, s.parts = 0, s.where
		return inPart, object
	case inPart:
		if !object {
			return s.openResult()
		}
	case inPrompt:
		return s.openPrompt(object)
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
		s.req.BodyEnd = s.at
	case inOptions:
		s.where = inBody
		s.req.OptionsEnd = s.at
	case inMessages:
		s.where = inBody
	case inMessage:
		s.endMessage()
		s.where = inMessages
	case inContent:
		s.where = s.list
		if s.where == inBody {
			s.endHead()
		}
	case inPart:
		s.closePart()
	case inResult:
		s.closeResult()
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
		s.from = s.at + 1
		text = (s.member == memberPrompt || s.member == memberItems) && s.newPrompt() || s.member == memberHead && s.beginHead()
	case inMessage:
		text = s.member == memberContent || s.member == memberStreamed && s.streams(&s.message)
	case inContent, inResult:
		text = true
	case inPart:
		text = s.member == memberText && s.beginText() || s.member == memberStreamed && s.parts != inResult && s.streams(&s.part)
	case inPrompt:
		text = s.prompt.take(formStrings, s.at) && s.separate()
	}
	if text {
		return modeText
	}
	return modeValue
}

// endString ends a string that was read piece by piece.
func (s *Scanner) endString() {
	switch {
	case s.mode == modeKey:
		w, _, sum := s.word.take()
		s.endKey(w, sum)
	case s.mode == modeValue:
		w, size, sum := s.word.take()
		if s.where == inBody && s.values.depth == 0 {
			w = unescape(w)
		}
		s.to = s.at
		s.endValue(w, size, sum)
	default:
		s.state = wantNext
		s.endText()
	}
}

// endText ends a string that went to the sink.
func (s *Scanner) endText() {
	switch {
	case s.where == inPrompt, s.where == inBody && s.member == memberPrompt:
		s.border()
	case s.where == inBody:
		s.putMark(markText)
		if s.member == memberHead {
			s.endHead()
			return
		}
		s.message, s.item = userRole, item{}
		s.endMessage()
	case s.where == inPart && s.member == memberText:
		s.dropBilling()
	default:
		s.putMark(markText)
	}
}

// endValue ends a string value that does not go to the sink. Its size and sum are
// those of its canonical spelling. w is nil if it is too long to be held; if it
// may be a name, it is the name.
func (s *Scanner) endValue(w []byte, size int64, sum uint64) {
	s.state = wantNext
	h := scalar(kindString, sum)
	s.aside(size)
	if s.values.depth > 0 {
		s.values.value(h)
		return
	}
	if s.where == inBody {
		s.bodyString(w, size)
	}
	s.deliver(kindString, h)
}

// endKey ends a key; w is nil if it is too long to be held.
func (s *Scanner) endKey(w []byte, sum uint64) {
	s.state = wantColon
	if s.values.depth > 0 {
		if s.req.Kind == Messages && s.values.depth == 2 && s.member == memberTools && string(w) == "cache_control" {
			sum = ignoredKey
		}
		s.values.key(sum)
		return
	}
	s.key = sum
	s.member = memberOf(s.where, s.req.Kind, w)
	if s.where == inBody && (s.member == memberTools || s.member == memberFunctions) {
		s.body.toolBytes[s.member-memberTools] = 0
	}
}

func (s *Scanner) endNumber() {
	if s.values.depth == 0 && (s.where == inIDs || s.where == inPrompt && s.req.Kind != Rerank && s.prompt.take(formIDs, s.at)) {
		s.putToken()
		return
	}
	_, _, sum := s.word.take()
	s.value(kindNumber, scalar(kindNumber, sum))
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
		s.messageMember(k, h)
	case inContent, inResult:
		s.part = h
		s.endPart()
	case inPart:
		s.partMember(k, h)
	}
}
