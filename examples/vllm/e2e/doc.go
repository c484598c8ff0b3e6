// Package e2e runs the quickstart in front of real vLLM servers and asks whether Warmlane knows what they hold: whether
// requests go where their prefix is resident, and whether the cached tokens it predicts are those the engine reports.
//
//	make e2e-vllm
//
// What is resident is counted a second time here, from the engines' own KV events and in another way than control does it.
// The first run installs vLLM; see package engine.
package e2e
