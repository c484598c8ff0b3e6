// Package wire speaks vLLM's HTTP: the same paths, JSON keys, headers, framing and
// refusals as the captures of vLLM 0.32 in ../testdata, in front of an engine
// that is a model.
//
// A tour, in the order a request meets it:
//
//	server.go      paths and methods
//	exchange.go    one request: its body in, a reply out, a line in the journal
//	journal.go     the request log: what arrived, byte for byte, and how it ended
//	faults.go      what is to go wrong, settable while running
//	json.go        is the body JSON at all, and if not, what would vLLM say
//	decode.go      the fields that matter, with their kinds checked (messages.go, prompts.go)
//	apierror.go    refusals
//	generate.go    a call becomes engine requests; their outputs come back through a mailbox
//	answer.go      answers in one piece
//	stream.go      answers as server-sent events, one HTTP chunk for each
//	dialect.go     what differs between the paths, and then one file for each:
//	               wording.go, responses.go, anthropic.go, embeddings.go, score.go, transcription.go
//	tokenize.go    /tokenize and /detokenize
//	lora.go        adapters at run time
//	metrics.go     /metrics (exposition.go has the text format)
//	info.go        small pages: health, version, models, load, event sources
//	debug.go       what vLLM does not have: blocks, requests, faults
//
// Text is built by appending: a stream's event costs one small write and no
// garbage worth mentioning.
package wire
