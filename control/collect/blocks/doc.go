// Package blocks makes of the KV events of a pool's engines one tree of token
// blocks with who holds what, and of that the records that filters route by
// (package kvindex).
//
// Engines name blocks by hashes of their own. A table per engine says which
// block of the tree a hash stands for and how many copies there are. The tree
// is radix: a node is an unbranched run of up to kvindex.MaxRun blocks and is
// split where sequences part, so that children follow the end of their parent.
// Blocks are known by kvindex keys, which stand for all the tokens up to them.
//
// # Copies and reports
//
// vLLM (0.32, v1/core/block_pool.py) says BlockStored for each physical copy of
// a block that it computes and BlockRemoved for each copy that it loses, so they
// are counted. But a request in the report mode "full" repeats, as a BlockStored
// of the same form, the blocks that it found in the cache, and no BlockRemoved
// will answer to that. What tells the two apart:
//
//   - A report begins at the prompt's start. What has a parent was computed.
//   - A report names what the engine has. If a block is not known to be there,
//     the run was computed; but if we only know the block by name, as the events
//     before it were missed, it is a report that says where it belongs.
//   - Who computes from the start what is there did not find it: the first block
//     alone, when a prompt is not longer than a block and so has no hit, or
//     several requests that began in one step, whose events share a batch. Other
//     runs are reports, and from the first of these on the engine is one whose
//     clients ask for reports, and doubtful runs are taken for reports too.
//
// A report taken for a copy would keep a block for ever; a copy taken for a
// report hides one that is there until it is stored anew. Hence the last rule.
//
// An Index belongs to one goroutine.
package blocks
