package route

import (
	"bytes"
	"strconv"
)

// WorkHeader tells the reporter beside a replica how much work a request is.
const WorkHeader = "x-warmlane-work"

// maxWork bounds what is believed of a request, in tokens.
const maxWork = 1 << 22

// AppendWork writes the value of [WorkHeader], a dictionary of RFC 9651:
//
//	prompt=812, uncached=172
//
// prompt is how many tokens the prompt has, uncached how many of them are not
// resident at the replica.
func AppendWork(dst []byte, prompt, uncached uint32) []byte {
	dst = strconv.AppendUint(append(dst, "prompt="...), uint64(prompt), 10)
	return strconv.AppendUint(append(dst, ", uncached="...), uint64(uncached), 10)
}

// ParseWork reads the value of [WorkHeader]. Members that mean nothing to us
// and parameters are skipped, of two equal keys the last one counts. Without a
// prompt ok is false; uncached is at most prompt, and prompt without it.
func ParseWork(value []byte) (prompt, uncached uint32, ok bool) {
	uncached = maxWork
	for len(value) > 0 {
		var member []byte
		member, value = cutMember(value)
		key, item, _ := bytes.Cut(member, equals)
		item, _, _ = bytes.Cut(item, semicolon)
		switch string(bytes.Trim(key, " \t")) {
		case "prompt":
			if n, good := parseWork(item); good {
				prompt, ok = n, true
			}
		case "uncached":
			if n, good := parseWork(item); good {
				uncached = n
			}
		}
	}
	return prompt, min(uncached, prompt), ok
}

var (
	equals    = []byte("=")
	semicolon = []byte(";")
)

// cutMember cuts the first member off a dictionary; commas in strings do not
// end it.
func cutMember(b []byte) (member, rest []byte) {
	quoted := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return b[:i], b[i+1:]
		}
	}
	return b, nil
}

func parseWork(item []byte) (uint32, bool) {
	v, ok := parseNumber(bytes.Trim(item, " \t"))
	if !ok || v < 0 {
		return 0, false
	}
	return uint32(min(v, maxWork)), true
}
