package exchange

import (
	"strconv"
	"strings"
	"testing"
)

// BenchmarkExchange is a whole exchange on the bare logic, its answer not
// streamed, with 8 replicas and a warm index.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{2 << 10, 32 << 10, 220 << 10} {
		b.Run(strconv.Itoa(size>>10)+"KB", func(b *testing.B) {
			h := newNative(b, 8, `{"piggyback":{"log":true}}`)
			head := &mapHeaders{}
			pairs := headersOf(map[string]string{":method": "POST", ":path": "/v1/chat/completions", "x-request-id": "abc"}).rest
			answer := headersOf(map[string]string{":status": "200", "content-type": "application/json"}).rest
			body := chatBody(strings.Repeat("Some text of a prompt, as long as a line of it is.\n", size/51), false)
			e := h.worker.NewExchange()
			drop := func(*Metric, uint64) {}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				e.Reset()
				head.rest = pairs
				e.RequestHeaders(head, false)
				for rest := body; ; {
					n := min(len(rest), 16<<10)
					e.RequestBody(rest[:n], n == len(rest))
					if rest = rest[n:]; len(rest) == 0 {
						break
					}
				}
				head.rest = answer
				e.ResponseHeaders(head, by(e.address()), false)
				e.ResponseEnd()
				e.Settle(noWord)
				h.worker.Tally().Drain(drop)
			}
		})
	}
}
