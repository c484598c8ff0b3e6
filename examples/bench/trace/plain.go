package main

import (
	"net"
	"strconv"

	"sigs.k8s.io/yaml"
)

// typed is a message of Envoy's, for fields that hold any.
func typed(name string, fields object) object {
	fields["@type"] = "type.googleapis.com/envoy.extensions." + name
	return fields
}

// plain is the bootstrap of an Envoy that only balances.
func plain(policy string, replicas []string) ([]byte, error) {
	endpoints := make([]any, len(replicas))
	for i, r := range replicas {
		host, port, err := net.SplitHostPort(r)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		endpoints[i] = object{"endpoint": object{"address": socket(host, n)}}
	}
	router := object{"name": "envoy.filters.http.router", "typed_config": typed("filters.http.router.v3.Router", object{})}
	manager := typed("filters.network.http_connection_manager.v3.HttpConnectionManager", object{
		"stat_prefix":         "plain",
		"stream_idle_timeout": "600s",
		"http_filters":        []any{router},
		"route_config": object{"virtual_hosts": []any{object{
			"name": "plain", "domains": []any{"*"},
			"routes": []any{object{"match": object{"prefix": "/"}, "route": object{"cluster": "replicas", "timeout": "0s"}}},
		}}},
	})
	return yaml.Marshal(object{
		"admin": object{"address": socket("127.0.0.1", 0)},
		"static_resources": object{
			"listeners": []any{object{
				"name": "plain", "address": socket("127.0.0.1", 0),
				"filter_chains": []any{object{"filters": []any{object{
					"name": "envoy.filters.network.http_connection_manager", "typed_config": manager,
				}}}},
			}},
			"clusters": []any{object{
				"name": "replicas", "connect_timeout": "1s", "type": "STATIC",
				"load_assignment": object{"cluster_name": "replicas", "endpoints": []any{object{"lb_endpoints": endpoints}}},
				"load_balancing_policy": object{"policies": []any{object{"typed_extension_config": object{
					"name": "balancer", "typed_config": typed("load_balancing_policies."+policy, object{}),
				}}}},
				"circuit_breakers": object{"thresholds": []any{object{
					"max_connections": 65536, "max_pending_requests": 65536, "max_requests": 65536,
				}}},
			}},
		},
	})
}

func socket(host string, port int) object {
	return object{"socket_address": object{"address": host, "port_value": port}}
}
