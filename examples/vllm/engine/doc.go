// Package engine runs a real vLLM without a GPU: the CPU build of a pinned version, serving a two-layer model with random
// weights that is made here. It answers nonsense, but its cache, events, metrics and errors are the real ones.
//
// [Start] installs it first if it has to: packages pinned by version and checksum, from the package index that pip is set
// up for, into .cache/vllm. That takes a few minutes and 5.5 GB, once; a start takes half a minute, and each server 2 GB
// of memory.
//
//	setup/requirements.in    what is wanted
//	setup/requirements.txt   all packages of it, with their checksums
//	setup/model.py           makes the model, its tokenizer and two LoRA adapters
//	setup/serve.py           runs the server, and leaves no process of it behind
package engine
