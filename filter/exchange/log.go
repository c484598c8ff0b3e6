package exchange

import (
	"strconv"
	"unicode/utf8"

	"github.com/warmlane/warmlane/filter/route"
)

// logOf writes the access log's line: one JSON object. Times count from the
// end of the request, when the choice was made. Envoy puts it where the
// log format says %FILTER_STATE(wasm.warmlane.log:PLAIN)%.
func (s *scratch) logOf(e *Exchange, now int64, outcome Outcome) []byte {
	b := append(s.log[:0], `{"time":"`...)
	b = appendTime(b, now)
	b = append(b, '"')
	b = appendText(b, "id", e.head.id[:e.head.idLen])
	b = appendText(b, "pool", e.pool.name)
	b = appendText(b, "model", e.scanner.Request().Model.Bytes())
	if e.sentAt != 0 && !e.replied {
		b = e.appendDecision(b)
	}
	b = appendText(b, "answered", e.answeredBy[:e.answeredLen])
	b = appendNumber(b, "status", int64(e.answer.status))
	if e.firstAt != 0 {
		b = appendNumber(b, "ttft_ms", e.firstAt-e.sentAt)
	}
	if e.sentAt != 0 {
		b = appendNumber(b, "duration_ms", now-e.sentAt)
	}
	b = e.appendSaid(b)
	b = appendText(b, "outcome", []byte(outcome.String()))
	if e.reason != NoReason {
		b = appendText(b, "reason", []byte(e.reason))
	}
	s.log = append(b, '}')
	return s.log
}

func (e *Exchange) appendDecision(b []byte) []byte {
	c := &e.choice
	b = appendNumber(b, "tier", int64(e.tier()))
	b = appendText(b, "branch", []byte(c.Branch.String()))
	if e.pool.precise != nil {
		b = e.appendKnown(b)
	}
	if e.named >= 0 {
		b = appendText(b, "replica", e.pool.router.Address(e.named))
	}
	b = appendNumber(b, "matched", int64(c.Matched))
	b = appendNumber(b, "prompt", int64(c.Prompt))
	b = appendNumber(b, "candidates", int64(c.Candidates))
	if c.N > 0 {
		b = appendScores(b, &c.Scores)
	}
	b = appendNumber(b, "queue_ms", 0)
	return e.appendLoad(b)
}

// appendKnown writes what tier 2 had to do with the decision.
func (e *Exchange) appendKnown(b []byte) []byte {
	k := &e.known
	b = appendText(b, "tokenize", []byte(sourceNames[k.source]))
	if k.fallback != route.NoHealthyWorker {
		b = appendText(b, "fallback", []byte(k.fallback.String()))
	}
	if e.askedAt != 0 {
		b = appendNumber(b, "tokenize_ms", e.askMS)
	}
	return appendNumber(b, "predicted", int64(e.predicted()))
}

// appendSaid writes what the answer said of itself.
func (e *Exchange) appendSaid(b []byte) []byte {
	u := &e.said.Usage
	if u.Prompt >= 0 {
		b = appendNumber(b, "prompt_tokens", u.Prompt)
	}
	if u.Completion >= 0 {
		b = appendNumber(b, "completion_tokens", u.Completion)
	}
	if u.Cached >= 0 {
		b = appendNumber(b, "cached", u.Cached)
	}
	return appendText(b, "finish", []byte(e.said.Finish.String()))
}

// appendLoad writes what was known of the chosen replica's load.
func (e *Exchange) appendLoad(b []byte) []byte {
	l := &e.choice.Load
	if l.At == 0 {
		return b
	}
	b = append(b, `,"load":{"age_ms":`...)
	b = strconv.AppendInt(b, max(e.sentAt-l.At, 0), 10)
	for _, n := range [...]struct {
		key   string
		value float32
	}{
		{"waiting", float32(l.Waiting)}, {"running", float32(l.Running)},
		{"kv", l.KV}, {"hit", l.Hit}, {"rps", l.RPS}, {"tps", l.TPS},
	} {
		if n.value >= 0 && n.value < 1e12 {
			b = append(append(append(b, `,"`...), n.key...), `":`...)
			b = appendDecimal(b, float64(n.value))
		}
	}
	return append(b, '}')
}

func appendScores(b []byte, s *route.Scores) []byte {
	b = append(b, `,"scores":{"prefix":`...)
	b = appendDecimal(b, float64(s.Prefix))
	b = appendDecimal(append(b, `,"owed":`...), float64(s.Owed))
	b = appendDecimal(append(b, `,"busy":`...), float64(s.Busy))
	b = appendDecimal(append(b, `,"foreign":`...), float64(s.Foreign))
	return append(b, '}')
}

func appendNumber(b []byte, key string, n int64) []byte {
	b = append(append(append(b, `,"`...), key...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

// appendText writes a member that is a string; an empty one is left out.
func appendText(b []byte, key string, text []byte) []byte {
	if len(text) == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":"`...)
	for len(text) > 0 {
		if n := plainRun(text); n > 0 {
			b, text = append(b, text[:n]...), text[n:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		b, text = appendRune(b, r), text[size:]
	}
	return append(b, '"')
}

// plainRun is the length of the beginning that JSON takes as it is.
func plainRun(text []byte) int {
	for i, c := range text {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return i
		}
	}
	return len(text)
}

// appendRune escapes what JSON wants escaped; what is not UTF-8 has become
// the replacement character.
func appendRune(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r < 0x20 || r == 0x7f:
		return append(append(b, `\u00`...), hex[r>>4], hex[r&15])
	}
	return utf8.AppendRune(b, r)
}
