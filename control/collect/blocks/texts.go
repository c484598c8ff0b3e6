package blocks

// text is a prompt's text key and the last block that is known of its path.
type text struct {
	id           uint64
	sum          uint64 // of the record last told, 0: none
	block        blockID
	next, prev   textID // in the list of its node; free ones by next
	older, newer textID
	dirty        bool
}

// texts are the prompts that are remembered, linked by age.
type texts struct {
	all            []text
	byID           map[uint64]textID
	free           textID
	oldest, newest textID
	dirty          []textID
	gone           []uint64 // ids of those that were told and are no more
}

// maxTexts is how many prompts are remembered.
const maxTexts = 1 << 16

func newTexts() texts {
	return texts{all: make([]text, 1), byID: map[uint64]textID{}}
}

// tell notes that the path of text id goes to b, unless it is known to go on
// from there. If there are too many texts the oldest is forgotten.
func (t *tree) tell(id uint64, b blockID) {
	x, known := t.texts.byID[id]
	if !known {
		if _, taken := t.heads[id]; taken {
			return
		}
		x = t.newText(id)
	}
	t.age(x)
	switch {
	case known && t.leads(b, t.texts.all[x].block):
		return
	case known:
		t.unhang(x)
	}
	t.texts.all[x].block = b
	t.hang(x)
	t.markText(x)
}

func (t *tree) newText(id uint64) textID {
	if len(t.texts.byID) >= maxTexts {
		t.forget(t.texts.oldest)
	}
	x := t.texts.free
	if x != 0 {
		t.texts.free = t.texts.all[x].next
	} else {
		t.texts.all = append(t.texts.all, text{})
		x = textID(len(t.texts.all) - 1)
	}
	// One that was forgotten may still be in the list of the dirty.
	t.texts.all[x] = text{id: id, dirty: t.texts.all[x].dirty}
	t.texts.byID[id] = x
	return x
}

// forget gives a text up; its path stays only if others need it.
func (t *tree) forget(x textID) {
	p := &t.texts.all[x]
	t.unhang(x)
	t.unage(x)
	delete(t.texts.byID, p.id)
	if p.sum != 0 {
		t.texts.gone = append(t.texts.gone, p.id)
	}
	*p = text{next: t.texts.free, dirty: p.dirty}
	t.texts.free = x
}

// hang puts x into the list of its node.
func (t *tree) hang(x textID) {
	p := &t.texts.all[x]
	n := &t.nodes[t.blocks[p.block].at.node()]
	p.next, p.prev = n.texts, 0
	if n.texts != 0 {
		t.texts.all[n.texts].prev = x
	}
	n.texts = x
}

// unhang takes x out of the list of its node, which may be needed no more.
func (t *tree) unhang(x textID) {
	p := &t.texts.all[x]
	n := t.blocks[p.block].at.node()
	if p.prev != 0 {
		t.texts.all[p.prev].next = p.next
	} else {
		t.nodes[n].texts = p.next
	}
	if p.next != 0 {
		t.texts.all[p.next].prev = p.prev
	}
	t.mark(n)
}

// age makes x the newest.
func (t *tree) age(x textID) {
	if t.texts.newest == x {
		return
	}
	t.unage(x)
	p := &t.texts.all[x]
	p.older, p.newer = t.texts.newest, 0
	if p.older != 0 {
		t.texts.all[p.older].newer = x
	} else {
		t.texts.oldest = x
	}
	t.texts.newest = x
}

// unage takes x out of the order of age, if it is there.
func (t *tree) unage(x textID) {
	p := &t.texts.all[x]
	switch {
	case p.newer != 0:
		t.texts.all[p.newer].older = p.older
	case t.texts.newest == x:
		t.texts.newest = p.older
	}
	switch {
	case p.older != 0:
		t.texts.all[p.older].newer = p.newer
	case t.texts.oldest == x:
		t.texts.oldest = p.newer
	}
}

// splitTexts moves those texts of n that end in m, which was split from it.
func (t *tree) splitTexts(n, m nodeID) {
	list := t.nodes[n].texts
	t.nodes[n].texts = 0
	for x := list; x != 0; {
		next := t.texts.all[x].next
		t.hang(x)
		if t.blocks[t.texts.all[x].block].at.node() == m {
			t.markText(x)
		}
		x = next
	}
}

// topText is how many of the node's blocks there are up to the last that ends a
// text.
func (t *tree) topText(n nodeID) (top uint32) {
	for x := t.nodes[n].texts; x != 0; x = t.texts.all[x].next {
		top = max(top, t.blocks[t.texts.all[x].block].at.offset()+1)
	}
	return top
}

func (t *tree) markText(x textID) {
	if p := &t.texts.all[x]; !p.dirty {
		p.dirty = true
		t.texts.dirty = append(t.texts.dirty, x)
	}
}
