package openai

// memberOf finds a key in the object at a place.
func memberOf(where place, kind Kind, key []byte) member {
	switch where {
	case inBody:
		return bodyMemberOf(kind, key)
	case inOptions:
		if string(key) == "include_usage" {
			return memberIncludeUsage
		}
	case inMessage:
		if string(key) == "content" {
			return memberContent
		}
		return messageMemberOf(kind, key)
	case inPart:
		switch string(key) {
		case "text":
			return memberText
		case "type":
			return memberType
		}
		return partMemberOf(kind, key)
	}
	return memberOther
}

// dialectMemberOf finds the members of the body that only one dialect has.
func dialectMemberOf(kind Kind, key []byte) member {
	switch kind {
	case Responses:
		return responsesMemberOf(key)
	case Messages:
		return messagesMemberOf(key)
	case Embeddings:
		switch string(key) {
		case "input":
			return memberPrompt
		case "messages":
			return memberMessages
		}
	case Rerank:
		return rerankMemberOf(key)
	}
	return memberOther
}

func responsesMemberOf(key []byte) member {
	switch string(key) {
	case "input":
		return memberItems
	case "instructions":
		return memberHead
	case "max_output_tokens":
		return memberMaxCompletion
	case "previous_response_id":
		return memberPrevious
	case "reasoning":
		return memberReasoning
	}
	return memberOther
}

func messagesMemberOf(key []byte) member {
	switch string(key) {
	case "messages":
		return memberMessages
	case "system":
		return memberHead
	case "thinking":
		return memberThinking
	case "output_config":
		return memberOutput
	case "cache_control":
		return memberIgnored
	}
	return memberOther
}

// rerankMemberOf knows the names that the two sides of a pair have at the
// engines' paths.
func rerankMemberOf(key []byte) member {
	switch string(key) {
	case "query", "queries", "text_1", "data_1":
		return memberHead
	case "documents", "items", "text_2", "data_2":
		return memberPrompt
	case "instruction":
		return memberInstruction
	}
	return memberOther
}

// messageMemberOf finds the members of a message, or of an item of
// /v1/responses, that are more than a part of its digest. The id and the status
// of an item are the server's own book-keeping; no template renders them.
func messageMemberOf(kind Kind, key []byte) member {
	switch kind {
	case Chat:
		switch string(key) {
		case "reasoning_content", "reasoning", "thinking":
			return memberAside
		}
	case Responses:
		switch string(key) {
		case "output", "arguments":
			return memberStreamed
		case "type":
			return memberType
		case "id":
			return memberID
		case "status":
			return memberIgnored
		}
	}
	return memberOther
}

// partMemberOf does the same for a part. What an answer says about its own text
// and marks for the cache are nothing that the engine renders.
func partMemberOf(kind Kind, key []byte) member {
	switch kind {
	case Responses:
		switch string(key) {
		case "annotations", "logprobs":
			return memberIgnored
		}
	case Messages:
		switch string(key) {
		case "content", "thinking":
			return memberStreamed
		case "input":
			return memberAside
		case "cache_control":
			return memberIgnored
		}
	}
	return memberOther
}
