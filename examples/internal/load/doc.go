// Package load talks to an OpenAI-style server the way people do: several users at once, each in conversations that
// grow turn by turn, on top of system prompts that some of them share, with streamed answers.
//
//   - script.go writes the conversations: the same seed gives the same words, so two runs ask for the same work
//   - client.go sends one request and measures it: time to the first token, tokens used, tokens found in the cache
//   - stream.go reads the event stream
//   - play.go lets the users loose on a server and gathers what they saw
//   - report.go turns the outcomes into the figures of a table
//
// The demo and the end-to-end tests use it; it knows nothing of Warmlane but the names of its two explaining headers.
package load
