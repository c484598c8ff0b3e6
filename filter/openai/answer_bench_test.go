package openai

import (
	"strings"
	"testing"
)

// tokenEvents are n events as vLLM sends them, one for each token.
func tokenEvents(n int, more string) [][]byte {
	var chunks [][]byte
	for i := range n {
		chunks = append(chunks, []byte(`data: {"id":"chatcmpl-92b7c35342d8dac3","object":"chat.completion.chunk","created":1796050750,"model":"tiny","choices":[{"index":0,"delta":{"content":"`+
			[]string{" selected", `\n`, " é", "ing"}[i%4]+`"},"logprobs":null,"finish_reason":null,"token_ids":null}]`+strings.Replace(more, "N", string(rune('1'+i%8)), 1)+"}\n\n"))
	}
	return chunks
}

// BenchmarkToken is what the chunk of one token costs after the first.
func BenchmarkToken(b *testing.B) {
	f := func(name string, chunks [][]byte) {
		b.Run(name, func(b *testing.B) {
			var a Answer
			a.Reset(true)
			a.Write(chunks[0])
			b.ReportAllocs()
			b.SetBytes(int64(len(chunks[0])))
			for i := 0; b.Loop(); i++ {
				a.Write(chunks[i%len(chunks)])
			}
			if a.Outputs < b.N {
				b.Errorf("%d outputs of %d events", a.Outputs, b.N)
			}
		})
	}
	f("alike", tokenEvents(64, ""))
	f("running_usage", tokenEvents(64, `,"usage":{"prompt_tokens":115,"total_tokens":116,"completion_tokens":N,"completion_tokens_details":null}`))
	halves := [][]byte{}
	for _, c := range tokenEvents(64, "") {
		halves = append(halves, c[:100], c[100:])
	}
	b.Run("in_halves", func(b *testing.B) {
		var a Answer
		a.Reset(true)
		b.ReportAllocs()
		for b.Loop() {
			for _, h := range halves[:2] {
				a.Write(h)
			}
		}
	})
	responses := [][]byte{}
	for i := range 8 {
		responses = append(responses, []byte("event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","sequence_number":`+string(rune('1'+i))+
			`,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c5","output_index":0,"content_index":0,"delta":" In","logprobs":[]}`+"\n\n"))
	}
	f("responses", responses)
}

// BenchmarkDocument is a whole JSON answer.
func BenchmarkDocument(b *testing.B) {
	f := func(name, answer string) {
		b.Run(name, func(b *testing.B) {
			body := []byte(answer)
			var a Answer
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				a.Reset(false)
				a.Write(body)
				if a.Usage.Prompt != 115 {
					b.Fatal(a.Facts)
				}
			}
		})
	}
	tail := `,"usage":{"prompt_tokens":115,"total_tokens":119,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":96}}}`
	f("chat_1KB", `{"id":"chatcmpl-8d6d3a82a73b8484","object":"chat.completion","created":1796050799,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"`+strings.Repeat(`selected\n `, 60)+`"},"finish_reason":"stop"}]`+tail)
	f("embeddings_100KB", `{"data":[{"embedding":[`+strings.Repeat("-0.0123456789,", 7000)+`0]}]`+tail)
}

func TestReadingMakesNoGarbage(t *testing.T) {
	chunks := tokenEvents(64, "")
	var a Answer
	read := func() {
		a.Reset(true)
		for _, c := range chunks {
			a.Write(c)
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
