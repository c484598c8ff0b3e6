package openai

import (
	"strconv"
	"strings"
	"testing"
)

// count is a sink that costs nothing.
type count int

func (n *count) Text(b []byte) { *n += count(len(b)) }
func (n *count) Border()       {}
func (n *count) Reset()        { *n = 0 }

func benchmarkScan(b *testing.B, kind Kind, body string) {
	var s Scanner
	var sink count
	data := []byte(body)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(kind, &sink)
		for rest := data; len(rest) > 0; {
			n := min(64<<10, len(rest))
			s.Write(rest[:n])
			rest = rest[n:]
		}
		if m := s.Close(); m.Fault != NoFault {
			b.Fatal(m)
		}
	}
}

func chatOf(content string) string {
	return `{"model":"org/base-7b","stream":true,"max_tokens":256,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"` + content + `"}],"temperature":0.7}`
}

// fill repeats s to about size bytes.
func fill(s string, size int) string { return strings.Repeat(s, size/len(s)) }

const line = `a line of a good sixty characters, then what ends it all: ok\n`

func BenchmarkScan2KB(b *testing.B)        { benchmarkScan(b, Chat, chatOf(fill(line, 2<<10))) }
func BenchmarkScan220KB(b *testing.B)      { benchmarkScan(b, Chat, chatOf(fill("plain text, ", 220<<10))) }
func BenchmarkScan220KBLines(b *testing.B) { benchmarkScan(b, Chat, chatOf(fill(line, 220<<10))) }
func BenchmarkScan220KBASCII(b *testing.B) {
	benchmarkScan(b, Chat, chatOf(fill(`\u65e5\u672c`, 220<<10)))
}
func BenchmarkScan220KBAccents(b *testing.B) {
	benchmarkScan(b, Chat, chatOf(fill(`caf\u00e9 au lait, s'il vous pla\u00eet\n`, 220<<10)))
}
func BenchmarkScan220KBQuotes(b *testing.B) {
	benchmarkScan(b, Chat, chatOf(fill(`{\"a\":\"b c\"}`, 220<<10)))
}

func BenchmarkScan200Messages(b *testing.B) {
	message := `{"role":"user","content":"` + fill(line, 1000) + `"},`
	benchmarkScan(b, Chat, `{"messages":[`+strings.Repeat(message, 200)+`{}]}`)
}

func BenchmarkScanTokens(b *testing.B) {
	var ids strings.Builder
	for i := range 30000 {
		ids.WriteString(strconv.Itoa(i*7919%128000) + ", ")
	}
	benchmarkScan(b, Completions, `{"prompt":[`+ids.String()+`1]}`)
}

// As Anthropic's client writes it: messages first, then system and tools.
func BenchmarkScanBlocks(b *testing.B) {
	block := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"` + fill(line, 1000) + `","cache_control":{"type":"ephemeral"}}]}]},`
	benchmarkScan(b, Messages, `{"max_tokens":256,"messages":[`+strings.Repeat(block, 200)+`{}],"model":"m","system":[{"type":"text","text":"`+fill(line, 20000)+`"}]}`)
}

func BenchmarkScanItems(b *testing.B) {
	item := `{"type":"message","role":"user","content":[{"type":"input_text","text":"` + fill(line, 1000) + `"}]},`
	benchmarkScan(b, Responses, `{"model":"m","input":[`+strings.Repeat(item, 200)+`{}]}`)
}

func BenchmarkScanForm(b *testing.B) {
	file := make([]byte, 1<<20)
	for i := range file {
		file[i] = byte(i * i >> 7)
	}
	body := []byte(recording + field("model", "m") + "--b\r\n\r\n" + string(file) + "\r\n--b--")
	var s Scanner
	var sink count
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s.ResetForm([]byte("b"), &sink)
		s.Write(body)
		if m := s.Close(); m.Fault != NoFault {
			b.Fatal(m)
		}
	}
}

func BenchmarkScanTools(b *testing.B) {
	tool := `{"type":"function","function":{"name":"look_up","description":"Looks something up.","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}},`
	benchmarkScan(b, Chat, `{"tools":[`+strings.Repeat(tool, 50)+`{}],"messages":[]}`)
}
