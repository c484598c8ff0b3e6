// Package hostsim hosts Proxy-Wasm HTTP filters the way Envoy does.
package hostsim
