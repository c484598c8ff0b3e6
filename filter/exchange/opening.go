package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/prefix"
)

// The opening of a prompt is what the engine renders before it although it stands
// on either side of it in the body: Anthropic's system, the instructions of
// /v1/responses, the query of documents. It has a chain of its own, so that
// conversations with one opening find each other, and its hash is part of the
// prompt's namespace. A short one is not worth the reads.

// lookUpOpening asks how much of the opening each replica was sent, and makes the
// namespace that of the prompt behind it.
func (e *Exchange) lookUpOpening(request *openai.Request, warm []prefix.Replica) {
	opened := e.pool.opened[:len(warm)]
	clear(opened)
	e.openingNamespace = e.namespace
	e.namespace = e.namespace.With(request.Head)
	e.apart = request.HeadBytes >= prefix.BlockBytes
	if !e.apart {
		return
	}
	if err := e.worker.index.Lookup(&e.opening, e.openingNamespace, warm, opened, e.sentAt); err != nil {
		clear(opened)
	}
}

// addOpening adds the opening to what was matched of the prompt: a replica that
// was sent some of this prompt had all of the opening before it.
func (e *Exchange) addOpening(request *openai.Request, matched []uint32) {
	for slot, opened := range e.pool.opened[:len(matched)] {
		if matched[slot] > 0 {
			opened = uint32(min(request.HeadBytes, 1<<31))
		}
		matched[slot] += opened
	}
}

// ring places the prompt where nothing is known of it: by its opening, if that is
// long enough, as prompts go whose opening is their first message.
func (e *Exchange) ring() uint64 {
	if e.apart {
		return e.opening.RingHash(e.openingNamespace)
	}
	return e.prompt.RingHash(e.namespace)
}
