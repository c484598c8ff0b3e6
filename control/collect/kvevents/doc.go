// Package kvevents follows what an engine tells about its KV cache.
//
//	engine -- ZMQ PUB --> live queue --+
//	                                   +--> in order, without holes --> Decode --> Sink
//	engine -- ZMQ ROUTER --> replay ---+
//
// A Follower keeps up with one Source: it connects for ever, notices holes and
// restarts by the sequence numbers, fetches what it missed from the engine's
// replay buffer, and hands typed events to a Sink. Decode turns the payload of one
// message into a Batch without garbage. ParseSources reads an engine's own list of
// its event sockets.
//
// Facts about the wire are those of vLLM 0.32 (vllm/distributed/kv_events.py and
// captures in testdata) and of its published older versions. ZMTP, the protocol
// under ZeroMQ sockets, is https://rfc.zeromq.org/spec/23/.
package kvevents
