package blocks

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
)

// capture decodes a message that a real engine sent: topic, sequence number and
// payload as lines of hex.
func capture(t *testing.T, name string) *kvevents.Batch {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "kvevents", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	payload, err := hex.DecodeString(string(lines[len(lines)-1]))
	if err != nil {
		t.Fatal(err)
	}
	var b kvevents.Batch
	if err := kvevents.Decode(payload, &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestCaptures folds what vLLM 0.32 sent and looks it up as a filter does.
func TestCaptures(t *testing.T) {
	for _, c := range []struct {
		name, lora, salt string
		blocks           int
	}{
		{"kv-stored-root.hex", "", "", 0},
		{"kv-stored-lora.hex", "lora-a", "", 3},
		{"kv-stored-salt.hex", "", "tenant-7", 3},
		{"kv-report-full.hex", "", "", 11},
		{"kv-removed-stored-session.hex", "", "", 4},
		{"kv-cleared-then-stored.hex", "", "", 3},
		{"kv-removed-then-stored.hex", "", "", 3},
	} {
		b := newBench(t)
		batch := capture(t, c.name)
		b.Fold(At{}, batch)
		b.pull()
		e := batch.Events[len(batch.Events)-1].Stored
		want := c.blocks
		if want == 0 {
			want = len(e.Hashes)
		}
		var salt uint64
		if c.salt != "" {
			salt = openai.SaltHash(c.salt)
		}
		var chain kvindex.Chain
		chain.Reset(kvindex.Root("pool", []byte(c.lora), salt), e.BlockSize)
		chain.Add(e.Tokens)
		if got, _ := b.run(0, chain.Keys()); got != want || got == 0 {
			t.Errorf("%s: %d blocks, want %d", c.name, got, want)
		}
		b.noted(noted{})
	}
}
