// Package kvevents publishes an engine's cache events the way vLLM does.
//
// Over a ZMQ PUB socket each batch is three frames: the topic, a sequence number
// (8 bytes, big-endian, from 0 for each life of the engine) and a msgpack payload
// (encode.go). A ROUTER socket replays batches that are still kept: a client
// sends an empty frame and the number to start from; it gets each batch and then
// an end mark (replay.go).
//
// Bytes were taken from captures of vLLM 0.32; older shapes can be switched on.
package kvevents
