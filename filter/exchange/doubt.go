package exchange

// Who answered is a question to the host that costs as much as the look-up in
// the text index. Envoy's count of attempts answers it for nothing where it is
// 1 and the answer is no failure: then the replica named first has answered,
// unless the cluster does not know its address. That is looked at now and then,
// and, once it has happened, every time for a while.
const (
	doubtEvery  = 16
	doubtMillis = 10_000
)

// doubts says whether the replica named first may not be the one that answered.
func (p *pool) doubts(a *responseHead, now int64) bool {
	p.answers++
	return !a.first || a.status >= 500 || p.answers%doubtEvery == 0 ||
		p.missedAt != 0 && now-p.missedAt < doubtMillis
}
