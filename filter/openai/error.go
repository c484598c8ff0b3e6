package openai

import (
	"strconv"
	"unicode/utf8"
)

// AppendError appends the body of an error answer to dst, in the shape that
// OpenAI's and vLLM's clients read:
//
//	{"error":{"message":"...","type":"...","param":null,"code":429}}
//
// An empty kind (the "type") is filled in by the status, an empty param is
// null, and an empty code is the status as a number, as vLLM has it.
func AppendError(dst []byte, status int, message, kind, param, code string) []byte {
	if kind == "" {
		kind = kindOf(status)
	}
	dst = append(dst, `{"error":{"message":`...)
	dst = appendString(dst, message)
	dst = append(dst, `,"type":`...)
	dst = appendString(dst, kind)
	dst = append(dst, `,"param":`...)
	if param == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, param)
	}
	dst = append(dst, `,"code":`...)
	if code == "" {
		dst = strconv.AppendInt(dst, int64(status), 10)
	} else {
		dst = appendString(dst, code)
	}
	return append(dst, "}}"...)
}

// kindOf names the type of an error as OpenAI's API does.
func kindOf(status int) string {
	switch {
	case status == 401 || status == 403:
		return "authentication_error"
	case status == 404:
		return "not_found_error"
	case status == 429:
		return "rate_limit_error"
	case status < 500:
		return "invalid_request_error"
	}
	return "server_error"
}

// appendString appends v as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, so that the answer is JSON whatever a client put into a name.
func appendString(dst []byte, v string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range v {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r == 0x7F:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xF])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
