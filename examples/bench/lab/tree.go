package lab

// node is one chunk of the prompts that begin with the same ids up to it: the
// prompts of a workload are a tree of them.
type node struct {
	parent   *node // nil for the root, which is before all prompts
	children map[uint64]*node
	start    int       // tokens before the chunk
	seed     uint64    // of its words
	ended    []*prompt // those that end in the first chunk below, or before it
	after    *prompt   // the prompt whose last, shorter chunk this one begins with
	parts    bool      // prompts part where the chunk ends
}

// prompt is a way through the tree.
type prompt struct {
	arrival
	path      []*node
	continued bool // a node has taken it for its beginning
	turn      bool // it goes on from an earlier prompt
}

// tree is all prompts of a workload.
type tree struct {
	root    *node
	seed    uint64
	prompts []*prompt
}

// turnTokens is by how many tokens a prompt must exceed another one and its
// answer to be the next turn of its conversation.
const turnTokens = 32

// plant makes the tree of prompts in order of arrival. A trace does not say
// that a prompt goes on where an earlier one ended, because the earlier one's
// last chunk was shorter and so had another id. It is taken to do so if it shares all
// other chunks with it, has room for its answer, and nobody else goes on from
// there.
func plant(all []arrival, seed uint64) *tree {
	t := &tree{root: &node{start: -chunkTokens}, seed: seed}
	for i := range all {
		t.add(all[i])
	}
	for _, p := range t.prompts {
		for _, n := range p.path {
			n.parts = n.ways() > 1
		}
	}
	return t
}

func (t *tree) add(a arrival) {
	p := &prompt{arrival: a}
	at := t.root
	for _, id := range a.ids {
		next := at.children[id]
		if next == nil {
			next = &node{parent: at, start: at.start + chunkTokens, seed: mix(t.seed ^ mix(at.seed) ^ id)}
			next.after = at.left(p)
			if at.children == nil {
				at.children = make(map[uint64]*node)
			}
			at.children[id] = next
		}
		p.turn = p.turn || next.after != nil
		p.path = append(p.path, next)
		at = next
	}
	whole := at // the last node that the prompt fills
	if a.input < at.start+chunkTokens {
		whole = at.parent
	}
	whole.ended = append(whole.ended, p)
	t.prompts = append(t.prompts, p)
}

// left finds the prompt that p goes on from in a new node below n: the last one
// that ended there.
func (n *node) left(p *prompt) *prompt {
	if n.parent == nil {
		return nil // nothing is shared
	}
	for i := len(n.ended) - 1; i >= 0; i-- {
		q := n.ended[i]
		if !q.continued && p.input >= q.input+q.output+turnTokens {
			q.continued = true
			return q
		}
	}
	return nil
}

// ways is in how many ways prompts go on after n. A prompt and the one that
// goes on from it go the same way.
func (n *node) ways() int {
	ways := len(n.children)
	for _, c := range n.children {
		if c.after != nil && c.after.last() != n {
			ways--
		}
	}
	return ways
}

func (p *prompt) last() *node { return p.path[len(p.path)-1] }

// at is the node whose words stand at the position, which is in n's chunk.
func (n *node) at(position int) *node {
	for n.after != nil && position < n.after.input {
		n = n.after.last()
	}
	return n
}
