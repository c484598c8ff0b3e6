package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// endpointsResource is the list of replicas as Envoy's endpoint discovery reads it. One that is draining stays in it, for the sake of
// its running streams, but no balancer of Envoy's chooses it.
func endpointsResource(replicas []replica) ([]byte, error) {
	endpoints := make([]any, 0, len(replicas))
	for _, each := range replicas {
		host, port, err := splitAddress(each.address)
		if err != nil {
			return nil, err
		}
		e := endpoint(host, port)
		if each.draining {
			e["health_status"] = "DRAINING"
		}
		endpoints = append(endpoints, e)
	}
	resource := assignment(clusterName, endpoints)
	resource["@type"] = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	return resources(resource)
}

// filterResource is the filter of envoy.yaml, with the module at wasm and the settings on top of its configuration, as Envoy's
// extension discovery reads it.
func filterResource(wasm string, s settings) ([]byte, error) {
	t := document()
	filter := t.take(wasmPath + "/typed_config")
	inner := &tree{root: filter, err: t.err}
	defaults, _ := inner.get("config/configuration/value").(string)
	inner.set("config/vm_config/code/local/filename", wasm)
	if inner.err != nil {
		return nil, fmt.Errorf("envoy.yaml: %w", inner.err)
	}
	config, err := filterConfig(defaults, s)
	if err != nil {
		return nil, err
	}
	inner.set("config/configuration/value", config)
	return resources(object{
		"@type":        "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
		"name":         filterName,
		"typed_config": filter,
	})
}

func resources(resource object) ([]byte, error) {
	return yaml.Marshal(object{"resources": []any{resource}})
}

// replace puts a file in place in one step, so that no reader ever sees half of it. Envoy notices the rename.
func replace(path string, data []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".next-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) // fails when all went well
	if _, err = next.Write(data); err == nil {
		err = next.Chmod(0o644)
	}
	if closing := next.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	return err
}
