package main

import (
	_ "embed"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

//go:embed envoy.yaml
var envoyYAML []byte

// site is what makes one run's Envoy differ from envoy.yaml.
type site struct {
	listen     string // HOST:PORT
	control    string // HOST:PORT
	endpoints  string // file with the replicas, watched
	filter     string // file with the filter and its configuration, watched
	maxBody    uint32
	accessLog  string // path; empty: standard error
	roundRobin bool
}

// Names and places in envoy.yaml.
const (
	poolName     = "default"
	listenerName = "warmlane"
	filterName   = "warmlane"
	clusterName  = "replicas"
	controlName  = "warmlane_control"

	listenerPath = "static_resources/listeners/warmlane"
	hcmPath      = listenerPath + "/filter_chains/clients/filters/envoy.filters.network.http_connection_manager/typed_config"
	filtersPath  = hcmPath + "/http_filters"
	wasmPath     = filtersPath + "/warmlane"
	vhostPath    = hcmPath + "/route_config/virtual_hosts/warmlane"
	clustersPath = "static_resources/clusters"
	wasmType     = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"
)

// document decodes envoy.yaml.
func document() *tree {
	t := &tree{}
	t.err = yaml.Unmarshal(envoyYAML, &t.root)
	return t
}

// bootstrap is envoy.yaml fitted to a site.
func bootstrap(s site) ([]byte, error) {
	t := document()
	t.set("admin/address", socket("127.0.0.1", 0))
	host, port, err := splitListen(s.listen)
	if err != nil {
		return nil, err
	}
	t.set(listenerPath+"/address", socket(host, port))
	t.set(vhostPath+"/request_body_buffer_limit", s.maxBody)
	t.set(clustersPath+"/replicas/eds_cluster_config/eds_config", watched(s.endpoints))
	accessLogs(t, s.accessLog)
	if s.roundRobin {
		withoutWarmlane(t)
	} else {
		withWarmlane(t, s)
	}
	if t.err != nil {
		return nil, fmt.Errorf("envoy.yaml: %w", t.err)
	}
	return yaml.Marshal(t.root)
}

// withWarmlane moves the filter out into the watched file (resources.go writes it) and points at control.
func withWarmlane(t *tree, s site) {
	t.take(wasmPath + "/typed_config")
	t.set(wasmPath+"/config_discovery", object{"config_source": watched(s.filter), "type_urls": []any{wasmType}})
	t.set(filtersPath+"/buffer/typed_config/max_request_bytes", s.maxBody)
	host, port, err := splitAddress(s.control)
	if err != nil {
		t.err = err
		return
	}
	t.set(clustersPath+"/warmlane_control/load_assignment", assignment(controlName, []any{endpoint(host, port)}))
}

// withoutWarmlane leaves a plain Envoy that takes one replica after the other.
func withoutWarmlane(t *tree) {
	t.drop(filtersPath, filterName, "buffer", "warmlane-headers")
	t.drop(clustersPath, controlName)
	t.set(clustersPath+"/replicas/load_balancing_policy", object{"policies": []any{object{"typed_extension_config": object{
		"name":         "envoy.load_balancing_policies.round_robin",
		"typed_config": object{"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"},
	}}}})
}

// accessLogs sends the access log to a file. Envoy's stream logger, which envoy.yaml has, is right for standard error only.
func accessLogs(t *tree, path string) {
	if path == "" {
		return
	}
	logs, _ := t.get(hcmPath + "/access_log").([]any)
	for _, each := range logs {
		log, _ := each.(object)
		config, isObject := log["typed_config"].(object)
		if !isObject {
			t.err = fmt.Errorf("access_log without typed_config")
			return
		}
		log["name"] = "envoy.access_loggers.file"
		config["@type"] = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
		config["path"] = path
	}
}

func socket(host string, port int) object {
	return object{"socket_address": object{"address": host, "port_value": port}}
}

func endpoint(host string, port int) object {
	return object{"endpoint": object{"address": socket(host, port)}}
}

func assignment(cluster string, endpoints []any) object {
	return object{"cluster_name": cluster, "endpoints": []any{object{"lb_endpoints": endpoints}}}
}

// watched is the source of a resource in a file that Envoy reads again whenever something is renamed into its folder.
func watched(path string) object {
	return object{
		"resource_api_version": "V3",
		"path_config_source":   object{"path": path, "watched_directory": object{"path": filepath.Dir(path)}},
	}
}
