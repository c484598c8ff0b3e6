package wire

import (
	"net/http"
	"strconv"
	"strings"
)

// apiError is a refusal in the form {"error":{"message","type","param","code"}}.
type apiError struct {
	status  int
	kind    string // "type" in the body
	message string
	param   string // "" is null
}

func (e *apiError) Error() string { return e.message }

// append writes the body. compact has no blanks, as in a reply of its own; inside
// a stream vLLM writes the same object with blanks.
func (e *apiError) append(b []byte, compact bool) []byte {
	colon, comma := `:`, `,`
	if !compact {
		colon, comma = `: `, `, `
	}
	b = append(b, `{"error"`+colon+`{"message"`+colon...)
	b = appendJSON(b, e.message)
	b = append(b, comma+`"type"`+colon...)
	b = appendJSON(b, e.kind)
	b = append(b, comma+`"param"`+colon...)
	if e.param == "" {
		b = append(b, "null"...)
	} else {
		b = appendJSON(b, e.param)
	}
	b = append(b, comma+`"code"`+colon...)
	b = strconv.AppendInt(b, int64(e.status), 10)
	return append(b, "}}"...)
}

func badRequest(message, param string) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequestError", message, param}
}

func unknownModel(name string, known []string) *apiError {
	return &apiError{http.StatusNotFound, "NotFoundError",
		"The model `" + name + "` does not exist. Valid aliases: " + strings.Join(known, ", ") + ".", "model"}
}

func tooLong(limit, prompt int) *apiError {
	n := strconv.Itoa(prompt)
	return badRequest("This model's maximum context length is "+strconv.Itoa(limit)+" tokens. However, your prompt contains "+n+
		" input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt."+
		" (parameter=input_tokens, value="+n+")", "input_tokens")
}

func noRoom(limit, prompt, answer int) *apiError {
	p, a := strconv.Itoa(prompt), strconv.Itoa(answer)
	return badRequest("This model's maximum context length is "+strconv.Itoa(limit)+" tokens. However, you requested "+a+
		" output tokens and your prompt contains "+p+" input tokens. Please reduce the length of the input prompt or the number of"+
		" requested output tokens. (parameter=max_tokens, value="+a+")", "max_tokens")
}

// busy is the refusal of a full queue. It has no Retry-After, like vLLM's.
var busy = &apiError{http.StatusServiceUnavailable, "Service Unavailable",
	"The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.", ""}

// engineDead is what vLLM says when its engine process is gone.
var engineDead = &apiError{http.StatusInternalServerError, "InternalServerError",
	"EngineCore encountered an issue. See stack trace (above) for the root cause.", ""}

// problem is one thing wrong with a body, as pydantic would list it.
type problem struct {
	kind, loc, msg, input string
	tail                  string // more fields, already formatted
}

func (p problem) append(b []byte) []byte {
	b = append(b, "\n  {'type': '"...)
	b = append(b, p.kind...)
	b = append(b, "', 'loc': '"...)
	b = append(b, p.loc...)
	b = append(b, "', 'msg': "...)
	b = appendQuoted(b, p.msg)
	b = append(b, ", 'input': "...)
	b = append(b, p.input...)
	b = append(b, p.tail...)
	return append(b, '}')
}

// appendQuoted writes a text as Python prints it.
func appendQuoted(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.ContainsRune(s, '\'') {
		quote = '"'
	}
	return append(append(append(b, quote), s...), quote)
}

// badBody is the type of refusals of bodies that are not what the path takes.
const badBody = "Bad Request"

// invalid is the refusal of a body with problems, of which there is at least one.
func invalid(problems []problem) *apiError {
	b := strconv.AppendInt(nil, int64(len(problems)), 10)
	b = append(b, " validation error"...)
	if len(problems) > 1 {
		b = append(b, 's')
	}
	b = append(b, ':')
	for _, p := range problems {
		b = p.append(b)
	}
	return &apiError{http.StatusBadRequest, badBody, string(b), problems[0].loc}
}

var wrongMediaType = &apiError{http.StatusBadRequest, badBody,
	"1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", ""}
