package blocks

import (
	"bytes"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
)

// root is what stands before the first block of the event's prompt.
func (x *Index) root(e *kvevents.Stored) uint64 {
	var salt uint64
	if text, ok := saltOf(e); ok {
		salt = openai.SaltHash(string(text))
	}
	return kvindex.Root(x.pool, e.Lora, salt)
}

// key is that of the event's i-th block, which follows one with the key before.
func (x *Index) key(e *kvevents.Stored, i int, before uint64) uint64 {
	key := kvindex.Next(before, e.Tokens[i*e.BlockSize:(i+1)*e.BlockSize])
	if e.Extra == nil {
		return key
	}
	if i == 0 {
		if _, salted := saltOf(e); salted {
			return key
		}
	}
	for _, k := range beyond(e, i) {
		key = kvindex.Opaque(key, k.Hash())
	}
	return key
}

// saltOf is the salt of the event's prompt. vLLM hashes in block 0 the adapter's
// name, multimodal items, the salt and digests of embeddings, in this order, and
// publishes the values without saying which is which: a single string beside the
// adapter's name is the salt.
func saltOf(e *kvevents.Stored) (salt []byte, ok bool) {
	if e.HasParent {
		return nil, false
	}
	if rest := beyond(e, 0); len(rest) == 1 {
		return rest[0].Text()
	}
	return nil, false
}

// beyond is what was hashed with the event's i-th block beside its tokens and the
// name of the adapter, which is part of the root.
func beyond(e *kvevents.Stored, i int) []kvevents.ExtraKey {
	if i >= len(e.Extra) {
		return nil
	}
	keys := e.Extra[i]
	if len(keys) > 0 && len(e.Lora) > 0 {
		if name, ok := keys[0].Text(); ok && bytes.Equal(name, e.Lora) {
			return keys[1:]
		}
	}
	return keys
}
