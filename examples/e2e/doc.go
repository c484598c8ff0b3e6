// Package e2e runs Warmlane whole, as its users do: the quickstart with a real
// Envoy, the compiled filter and control, in front of scripted or simulated
// replicas.
//
//	make e2e
//
// WARMLANE_ENVOY_VERSION names another Envoy than the default. The tests need
// `make build` first and fail if that is missing; those of the official clients
// need Python 3.10 with venv.
package e2e
