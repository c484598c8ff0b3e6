package wire_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/pace"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// BenchmarkRequest is what a request costs the replica, without the network.
func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{2 << 10, 32 << 10, 220 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			eng := engine.New(engine.Config{PrefillRate: 1e9, DecodeRate: 1e6, DecodeFull: 1e6})
			runner := pace.New(eng, pace.NewClock(1))
			defer runner.Stop()
			s := wire.New(wire.Config{Runner: runner, Engine: eng.Config(), Models: []string{"m"}})
			text := strings.Repeat("The suite is executed in order. ", size/32)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body := fmt.Sprintf(`{"messages":[{"role":"user","content":"%d %s"}],"max_tokens":1}`, i, text)
				req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, req); w.Code != 200 {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
