// Package kvindex tells how many blocks of a prompt each replica has in its KV
// cache, as the engines themselves report it.
//
// Control hears the engines' events and folds them into a tree of token blocks;
// what changed in it comes to the proxy as records. A [Writer], in the one
// worker that hears from control, puts them into shared data, and a [Reader] in
// every worker looks prompts up.
//
// # Keys
//
// A block is so many tokens as the engine says. Its key is a hash of its tokens
// seeded with the key of the block before it ([Next]), the first with the
// namespace ([Root]); so a key stands for all of a prompt up to its block, and
// a block from the middle of another prompt never matches. The engines' own
// hashes depend on settings that cannot be known outside and stay in control.
//
// # Records
//
// A record is the state of something under a 64-bit id, never a change to it:
// a newer one simply replaces it. There are two kinds.
//
// A [Node] is a run of up to 128 blocks in which no two prompts part, and for
// each replica how many of its leading blocks it has there, on the GPU and in
// any tier. Other nodes attach to its end. Its id is the key of its first block,
// so who has the keys of a prompt can walk down without searching
// ([Reader.Lookup]): 2,000 blocks are some 16 to 21 nodes.
//
// A [Text] says which path through the tree an engine made of a prompt, under
// the key of the prompt's text. So a prompt that was seen before is found
// without its tokens, by walking up from the end of the path
// ([Reader.LookupText]).
//
// # How the index lies in shared data
//
// Records lie in 2,048 buckets of at most 8 KiB by their id, and a head (head.go)
// says which epoch is valid and whether it is complete. A bucket of another
// epoch is empty: that is how all records are removed at once, since keys of
// shared data never are. Records are written bucket by bucket, in slices, while
// others read. So a reader may meet a tree that is half new. It checks that
// nodes fit together, and where they do not, or one is missing because there
// was no room, it claims less: nobody has what lies beyond.
//
// # What is learned beside it
//
// Every worker adds what it finds out by itself to [Learned]: through which
// borders of messages known prompts pass, and the blocks of prompts whose
// tokens a replica was asked for.
package kvindex
