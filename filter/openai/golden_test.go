package openai

import (
	"encoding/binary"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// The canonical bytes of chat and completions name prompts in every proxy and in
// control, so they stay as they are from version to version.
func TestGoldenCanonicalBytes(t *testing.T) {
	f := func(kind Kind, body string, want uint64) {
		t.Helper()
		text, r := canonical(t, kind, body)
		h := xxhash.New()
		_, _ = h.Write(text)
		for _, sum := range [...]uint64{r.Salt, r.Tools, r.Template} {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, sum))
		}
		if got := h.Sum64(); got != want {
			t.Errorf("%.100s: %#x, want %#x", body, got, want)
		}
	}
	f(Chat, `{"messages":[{"role":"system","content":"be nice"},{"role":"user","content":[{"type":"text","text":"a\n\u00e9"},{"type":"image_url","image_url":{"url":"data:","detail":"low"}}]}],"model":"m"}`, 0x6b87614244ba94d2)
	f(Chat, `{"messages":[{"role":"assistant","content":null,"reasoning_content":"so","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"12","thinking":[1,{"":null,"cache_control":2}]}]}`, 0x1d7acb5fb66530d8)
	f(Chat, `{"messages":["a"],"messages":[{"content":["a",5,{"type":"input_text","text":"b","annotations":[],"cache_control":{"type":"ephemeral"},"content":"c","thinking":"d"}],"id":"x","status":"y","output":"z","arguments":"w","type":"message"}]}`, 0x74bab503afa34884)
	f(Chat, `{"messages":[],"cache_salt":"s","tools":[{"name":"f","cache_control":{"type":"ephemeral"},"":1.0}],"functions":[1],"documents":[{"text":"d"}],"reasoning_effort":"low","truncate_prompt_tokens":7,"thinking":{"type":"enabled"},"input":"i","system":"s"}`, 0x9af20c48b9bd1b1a)
	f(Completions, `{"prompt":["one\/","two"],"suffix":"s","chat_template_kwargs":{"b":1,"a":[]}}`, 0x81318512f7b0c45f)
	f(Completions, `{"prompt":[[15,27],[99]],"add_special_tokens":false,"mm_processor_kwargs":{"a":1}}`, 0x17495ce4adf9124e)
}
