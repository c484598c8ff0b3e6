package blocks

// holder says which blocks of a node an engine has. Those of a node are linked
// by next, free ones too.
type holder struct {
	tiers [tiers]mask // at least one is not empty
	next  holderID
	rank  rankID
}

// tier is where a block lies, as far as routing cares.
type tier uint8

const (
	onGPU tier = iota
	below      // in any lower tier
	tiers
)

// hold notes that r has b in a tier. It tells whether that is new.
func (t *tree) hold(r rankID, b blockID, in tier) bool {
	at := t.blocks[b].at
	h := t.holder(at.node(), r)
	if h == 0 {
		h = t.addHolder(at.node(), r)
	}
	m := &t.holders[h].tiers[in]
	if m.has(at.offset()) {
		return false
	}
	m.set(at.offset())
	t.mark(at.node())
	return true
}

// release notes that r has b no more in a tier.
func (t *tree) release(r rankID, b blockID, in tier) {
	at := t.blocks[b].at
	h := t.holder(at.node(), r)
	if h == 0 {
		return
	}
	p := &t.holders[h]
	p.tiers[in].clear(at.offset())
	t.mark(at.node())
	if p.tiers[onGPU].empty() && p.tiers[below].empty() {
		t.popHolder(at.node())
	}
}

// vacate takes r out of the node's holders.
func (t *tree) vacate(n nodeID, r rankID) {
	if t.holder(n, r) != 0 {
		t.popHolder(n)
		t.mark(n)
	}
}

// holder returns r's holder of a node, 0 if there is none, and puts it first:
// events come in runs of one engine.
func (t *tree) holder(n nodeID, r rankID) holderID {
	var before holderID
	for h := t.nodes[n].holders; h != 0; h = t.holders[h].next {
		if t.holders[h].rank == r {
			if before != 0 {
				t.holders[before].next = t.holders[h].next
				t.holders[h].next = t.nodes[n].holders
				t.nodes[n].holders = h
			}
			return h
		}
		before = h
	}
	return 0
}

// addHolder puts an empty holder first.
func (t *tree) addHolder(n nodeID, r rankID) holderID {
	h := t.freeHolder
	if h != 0 {
		t.freeHolder = t.holders[h].next
	} else {
		t.holders = append(t.holders, holder{})
		h = holderID(len(t.holders) - 1)
	}
	t.holders[h] = holder{rank: r, next: t.nodes[n].holders}
	t.nodes[n].holders = h
	return h
}

// popHolder takes out the first holder.
func (t *tree) popHolder(n nodeID) {
	h := t.nodes[n].holders
	t.nodes[n].holders = t.holders[h].next
	t.holders[h] = holder{next: t.freeHolder}
	t.freeHolder = h
}

// splitHolders gives to m what the holders of n have from offset cut on.
func (t *tree) splitHolders(n, m nodeID, cut uint32) {
	list := t.nodes[n].holders
	t.nodes[n].holders = 0
	for h := list; h != 0; {
		next := t.holders[h].next
		var tail [tiers]mask
		for i := range tail {
			tail[i] = t.holders[h].tiers[i].cut(cut)
		}
		if !tail[onGPU].empty() || !tail[below].empty() {
			add := t.addHolder(m, t.holders[h].rank)
			t.holders[add].tiers = tail
		}
		t.holders[h].next = t.nodes[n].holders
		t.nodes[n].holders = h
		if p := &t.holders[h]; p.tiers[onGPU].empty() && p.tiers[below].empty() {
			t.popHolder(n)
		}
		h = next
	}
}

// topHeld is how many of the node's blocks there are up to the last that is held.
func (t *tree) topHeld(n nodeID) (top uint32) {
	for h := t.nodes[n].holders; h != 0; h = t.holders[h].next {
		for i := range t.holders[h].tiers {
			top = max(top, t.holders[h].tiers[i].top())
		}
	}
	return top
}
