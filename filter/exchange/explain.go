package exchange

import "strconv"

// decisionOf writes x-warmlane-decision, a dictionary of RFC 9651. est says
// that tokens were estimated from bytes.
func (s *scratch) decisionOf(e *Exchange) []byte {
	c := &e.choice
	b := append(appendItem(s.decision[:0], "tier=", int64(e.tier())), ", branch="...)
	b = append(b, c.Branch.String()...)
	if e.named >= 0 {
		b = append(b, `, replica="`...)
		b = append(b, e.pool.router.Address(e.named)...)
		b = append(b, '"')
	}
	b = appendItem(b, ", matched=", int64(c.Matched))
	b = appendItem(b, ", prompt=", int64(c.Prompt))
	if e.tier() == 1 {
		b = append(b, ", est"...)
	}
	b = appendItem(b, ", candidates=", int64(c.Candidates))
	b = append(b, ", queue_ms=0"...)
	s.decision = b
	return b
}

// loadOf writes x-warmlane-load, a dictionary of RFC 9651, of the chosen
// replica at the time of the decision. What is not known is left out.
func (s *scratch) loadOf(e *Exchange) []byte {
	l := &e.choice.Load
	b := s.load[:0]
	if l.At > 0 {
		b = appendCount(b, "waiting=", l.Waiting)
		b = appendCount(b, "running=", l.Running)
		b = appendRatio(b, "kv=", l.KV)
		b = appendRatio(b, "hit=", l.Hit)
		b = appendRatio(b, "rps=", l.RPS)
		b = appendRatio(b, "tps=", l.TPS)
		b = appendItem(comma(b), "age_ms=", max(e.sentAt-l.At, 0))
	}
	s.load = b
	return b
}

func comma(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	return b
}

func appendItem(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

func appendCount(b []byte, key string, n int32) []byte {
	if n < 0 {
		return b
	}
	return appendItem(comma(b), key, int64(n))
}

// appendRatio writes a decimal as RFC 9651 has it: at most 3 digits after the
// point and 12 before.
func appendRatio(b []byte, key string, f float32) []byte {
	if f != f || f < 0 || f >= 1e12 {
		return b
	}
	return appendDecimal(append(comma(b), key...), float64(f))
}

// appendDecimal writes f, not negative and below 1e12, rounded to three digits
// after the point, of which it leaves out those that are 0 at the end.
func appendDecimal(b []byte, f float64) []byte {
	n := int64(f*1000 + 0.5)
	b = strconv.AppendInt(b, n/1000, 10)
	if n %= 1000; n == 0 {
		return b
	}
	b = append(b, '.', byte('0'+n/100))
	if n %= 100; n != 0 {
		b = append(b, byte('0'+n/10))
		if n %= 10; n != 0 {
			b = append(b, byte('0'+n))
		}
	}
	return b
}

// lengthOf writes the length of a body.
func (s *scratch) lengthOf(n int64) []byte {
	s.length = strconv.AppendInt(s.length[:0], n, 10)
	return s.length
}

func itoa(n int) string { return strconv.Itoa(n) }
