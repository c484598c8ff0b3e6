package openai

// spot is a place in an answer where something of interest stands: first the
// containers, then what stands in them.
type spot uint8

const (
	nowhere     spot = iota
	theAnswer        // {...}
	theChoices       // {"choices": [...]}
	theChoice        // {"choices": [{...}]}
	theDelta         // {"choices": [{"delta": {...}}]}, and Anthropic's {"delta": {...}}
	theUsage         // {"usage": {...}}
	theDetails       // {"usage": {"prompt_tokens_details": {...}}}
	theResponse      // {"response": {...}}, in events of the responses dialect
	theMessage       // {"message": {...}}, in Anthropic's message_start
	theReason        // {"incomplete_details": {...}}

	someDelta  // text in the responses dialect, an object in Anthropic's
	someOutput // text, or whatever tool calls are
	someError
	aFinish
	aStatus
	aType
	anObject
	aPrompt
	aCompletion
	aCached
	aRead
	aWritten
)

// isWord says whether the string at a spot is looked at.
func (s spot) isWord() bool { return s >= aFinish && s <= anObject }

// isCount says whether the number at a spot is looked at.
func (s spot) isCount() bool { return s >= aPrompt }

// member is the spot of the value with this key in a container.
func (s spot) member(key []byte) spot {
	switch s {
	case theAnswer:
		return answerMember(key)
	case theResponse, theMessage:
		return responseMember(key)
	case theChoice:
		switch string(key) {
		case "delta", "message":
			return theDelta
		case "finish_reason":
			return aFinish
		}
		return outputMember(key)
	case theDelta:
		if string(key) == "stop_reason" {
			return aFinish
		}
		return outputMember(key)
	case theUsage:
		return usageMember(key)
	case theDetails:
		if string(key) == "cached_tokens" {
			return aCached
		}
	case theReason:
		if string(key) == "reason" {
			return aFinish
		}
	}
	return nowhere
}

func answerMember(key []byte) spot {
	switch string(key) {
	case "choices":
		return theChoices
	case "response":
		return theResponse
	case "message":
		return theMessage
	case "delta":
		return someDelta
	case "type":
		return aType
	case "object":
		return anObject
	}
	return responseMember(key)
}

func responseMember(key []byte) spot {
	switch string(key) {
	case "usage":
		return theUsage
	case "error":
		return someError
	case "status":
		return aStatus
	case "stop_reason":
		return aFinish
	case "incomplete_details":
		return theReason
	}
	return nowhere
}

// outputMember knows the members of a delta, a message or a choice that hold
// output.
func outputMember(key []byte) spot {
	switch string(key) {
	case "content", "text", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call", "thinking", "partial_json":
		return someOutput
	}
	return nowhere
}

func usageMember(key []byte) spot {
	switch string(key) {
	case "prompt_tokens", "input_tokens":
		return aPrompt
	case "completion_tokens", "output_tokens":
		return aCompletion
	case "prompt_tokens_details", "input_tokens_details":
		return theDetails
	case "cache_read_input_tokens":
		return aRead
	case "cache_creation_input_tokens":
		return aWritten
	}
	return nowhere
}

// inner is the container that begins at a spot; nowhere is one that does not
// matter.
func (s spot) inner(object bool) spot {
	switch {
	case s == theChoices && !object:
		return theChoices
	case s == someDelta && object:
		return theDelta
	case s != theChoices && s < someDelta && object:
		return s
	}
	return nowhere
}

// something is said at a spot, be it a text or anything else that is not empty.
func (d *said) something(at spot) {
	switch at {
	case someOutput, someDelta:
		d.output = true
	case someError:
		d.failed = true
	}
}

// word is said at a spot.
func (d *said) word(at spot, w []byte) {
	switch at {
	case aFinish:
		d.finish = max(d.finish, finishOf(w))
	case aStatus:
		d.finish = max(d.finish, statusOf(w))
	case anObject:
		d.failed = d.failed || string(w) == "error"
	case aType:
		d.event(w)
	}
}

// event knows the types of events that end a stream, well or not.
func (d *said) event(kind []byte) {
	switch string(kind) {
	case "error", "response.failed":
		d.failed = true
	}
	switch string(kind) {
	case "response.completed", "response.incomplete", "response.failed", "message_stop":
		d.ended = true
	}
}

// count is said at a spot.
func (d *said) count(at spot, n int64) {
	switch at {
	case aPrompt:
		d.usage.Prompt = n
	case aCompletion:
		d.usage.Completion = n
	case aCached:
		d.usage.Cached = n
	case aRead:
		d.read = n
	case aWritten:
		d.written = n
	}
}
