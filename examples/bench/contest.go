package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
)

// contestant is one way to run Envoy: what is left of envoy.yaml.
type contestant struct {
	name string
	fit  func(*tree)
}

// contestants lists all that can be measured. The first is what the others are compared with, and it is as bare as an Envoy can be:
// whatever envoy.yaml has beside a listener, a route and a cluster is on Warmlane's bill, access log and retries included. Two
// more tell where that bill comes from: logged is plain with that access log and those retries, unlogged is Warmlane without a log.
var contestants = []contestant{
	{plain, func(t *tree) { bare(t); t.drop(filtersPath + "/buffer") }},
	{"buffer", bare},
	{warmlane, func(*tree) {}},
	{"logged", func(t *tree) { undress(t); t.drop(filtersPath + "/buffer") }},
	{"unlogged", func(t *tree) { withoutLog(t); mute(t) }},
}

const (
	plain    = "plain"
	warmlane = "warmlane"
)

// Places in envoy.yaml.
const (
	listenerPath = "static_resources/listeners/warmlane"
	hcmPath      = listenerPath + "/filter_chains/clients/filters/envoy.filters.network.http_connection_manager/typed_config"
	filtersPath  = hcmPath + "/http_filters"
	wasmPath     = filtersPath + "/warmlane/typed_config/config"
	vhostPath    = hcmPath + "/route_config/virtual_hosts/warmlane"
	clustersPath = "static_resources/clusters"
	replicasPath = clustersPath + "/replicas"
	controlPath  = clustersPath + "/warmlane_control"
)

// undress takes away Warmlane and what it needs, and leaves the rest of envoy.yaml.
func undress(t *tree) {
	t.drop(filtersPath + "/warmlane")
	t.drop(filtersPath + "/warmlane-headers")
	t.drop(controlPath)
	t.set(replicasPath+"/load_balancing_policy", object{"policies": []any{object{"typed_extension_config": object{
		"name":         "envoy.load_balancing_policies.round_robin",
		"typed_config": object{"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"},
	}}}})
}

// bare takes away all but listener, buffer filter, route and cluster.
func bare(t *tree) {
	undress(t)
	withoutLog(t)
	t.drop(hcmPath + "/local_reply_config")
	t.drop(vhostPath + "/request_body_buffer_limit")
	t.drop("stats_config")
	t.drop("overload_manager")
	routes, _ := t.get(vhostPath + "/routes").([]any)
	for _, each := range routes {
		route, _ := each.(object)
		action, _ := route["route"].(object)
		delete(action, "retry_policy")
	}
}

func withoutLog(t *tree) { t.drop(hcmPath + "/access_log") }

// mute keeps the filter from writing a line that nobody reads.
func mute(t *tree) {
	const path = wasmPath + "/configuration/value"
	text, _ := t.get(path).(string)
	config := &tree{}
	config.err = json.Unmarshal([]byte(text), &config.root)
	config.set("piggyback/log", false)
	out, err := json.Marshal(config.root)
	if t.err == nil {
		t.err = errors.Join(config.err, err)
	}
	t.set(path, string(out))
}

// site is where the parts of this run are.
type site struct {
	replicas []string // HOST:PORT
	control  string   // HOST:PORT
	wasm     string   // path
}

// fitted is envoy.yaml for a contestant at a site.
func fitted(document []byte, c contestant, s site) ([]byte, error) {
	t := &tree{}
	if t.err = yaml.Unmarshal(document, &t.root); t.err == nil {
		settle(t, s)
		c.fit(t)
	}
	if t.err != nil {
		return nil, fmt.Errorf("envoy.yaml for %s: %w", c.name, t.err)
	}
	return yaml.Marshal(t.root)
}

// settle points envoy.yaml at the parts of this run: no more than its lines marked EDIT, but a fixed list of replicas.
func settle(t *tree, s site) {
	free := socket("127.0.0.1:0")
	t.set("admin/address", free)
	t.set(listenerPath+"/address", free)
	t.set(wasmPath+"/vm_config/code/local/filename", s.wasm)
	t.drop(replicasPath + "/eds_cluster_config")
	t.set(replicasPath+"/type", "STATIC")
	t.set(replicasPath+"/load_assignment", assignment("replicas", s.replicas...))
	t.set(controlPath+"/load_assignment", assignment("warmlane_control", s.control))
	logs, _ := t.get(hcmPath + "/access_log").([]any)
	for _, each := range logs {
		log, _ := each.(object)
		if config, ok := log["typed_config"].(object); ok {
			log["name"] = "envoy.access_loggers.file"
			config["@type"] = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
			config["path"] = os.DevNull // formed and written, but not kept
		}
	}
}

func socket(address string) object {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	return object{"socket_address": object{"address": host, "port_value": number}}
}

func assignment(cluster string, addresses ...string) object {
	var endpoints []any
	for _, a := range addresses {
		endpoints = append(endpoints, object{"endpoint": object{"address": socket(a)}})
	}
	return object{"cluster_name": cluster, "endpoints": []any{object{"lb_endpoints": endpoints}}}
}

// chosen finds contestants by name, plain first.
func chosen(names []string) ([]contestant, error) {
	list := []contestant{contestants[0]}
	for _, name := range names {
		i := slices.IndexFunc(contestants, func(c contestant) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no contestant is named %q", name)
		}
		if i > 0 {
			list = append(list, contestants[i])
		}
	}
	return list, nil
}
