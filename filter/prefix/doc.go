// Package prefix finds out which replicas have seen the beginning of a prompt.
//
// A [Chain] takes the canonical bytes of a prompt as they come and hashes them
// in blocks of 256 bytes, each block's hash seeded with the one before it. So
// a hash stands for everything up to its block, and a block from the middle of
// another prompt never matches. Of the hashes only those on a ladder are kept
// (ladder.go): every block up to 16, then steps of a sixteenth of the length.
// Where a message ends there is a border, hashed apart, because that is where
// prompts part. None of this depends on how the bytes were cut, and the chain
// is of fixed size for prompts up to 64 MB.
//
// An [Index] remembers, in shared data and so for all workers of the proxy,
// which replica was sent which prompt. A hash alone never decides: it is mixed
// with a [Namespace] first (model, salt, tools), so what belongs to different
// namespaces never meets.
//
// # How the index lies in shared data
//
// A request cannot afford a read for each rung, so the rungs that a prompt has
// in common with its neighbours lie in one bucket. There are three groups:
//
//	group  blocks            bucket chosen by the hash of  an entry's tags
//	A      1 to 64           block 4                       rungs 1 to 64
//	B      65 to 4,096       block 64                      block 64, rungs to 4,096
//	C      4,097 to 262,144  block 4,096                   block 4,096, rungs to 262,144
//
// An entry says: this replica was sent a prompt with these rungs (32 bits of
// each are kept), when its token clock stood so. As hashes are chained, the
// longest run of equal tags from an entry's first is how much of the prompt the
// replica has seen, short by at most a sixteenth.
//
// All prompts with the same first kilobyte share a bucket of group A, and under
// a popular system prompt it forgets soon. What such a conversation is known by
// is its border entry: the hash of the whole prompt has a bucket of its own
// choice, small and shared by chance only. The next turn of the conversation
// has that hash among its last borders. Prompts of less than four blocks have
// border entries only.
//
// A border that lies within a block or a sixteenth of what the groups found is
// not looked up: the ladder is no more exact. And as the border of a prompt is
// written together with its groups, it is left alone when they were complete.
//
// # What a worker keeps
//
// A read makes the host allocate for the answer, which costs five times as much
// as a write and more than the search itself. So a worker keeps images of the
// buckets it used last (cache.go), and one is used without a read for 20 ms, or
// for a second if some replica has all of the prompt that the bucket can tell.
// So long another worker's entry may go unseen. What that costs is a warm
// replica overlooked where another is known, or one taken for warm whose entry
// was withdrawn; a write never builds on an old image, because its
// compare-and-set then fails and it starts from a new read.
//
// # Age
//
// Nothing is ever removed from shared data, and time says little about what a
// replica still has in its cache. So age is counted in the replica's own
// tokens: an entry is believed until the replica was sent as many uncached
// tokens as its cache holds. In full buckets the entry longest untouched is
// overwritten.
package prefix
