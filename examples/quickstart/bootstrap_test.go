package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var somewhere = site{
	listen: "[::1]:8080", control: "127.0.0.1:9902", endpoints: "/x/endpoints/replicas.yaml", filter: "/x/filter/warmlane.yaml",
	maxBody: 1000, accessLog: "/x/access.log",
}

// fitted renders envoy.yaml for a site and decodes the result.
func fitted(t *testing.T, s site) *tree {
	t.Helper()
	text, err := bootstrap(s)
	if err != nil {
		t.Fatal(err)
	}
	doc := &tree{}
	if err := yaml.UnmarshalStrict(text, &doc.root); err != nil {
		t.Fatal(err)
	}
	return doc
}

// holds compares a place in a document with its JSON.
func holds(t *testing.T, doc *tree, path, want string) {
	t.Helper()
	got, err := json.Marshal(doc.get(path))
	if err != nil || string(got) != want {
		t.Errorf("%s is %s (%v, %v), want %s", path, got, err, doc.err, want)
	}
}

func names(t *testing.T, doc *tree, path string) string {
	t.Helper()
	var all []string
	list, _ := doc.get(path).([]any)
	for _, element := range list {
		all = append(all, nameOf(element))
	}
	return strings.Join(all, " ")
}

func TestEnvoyYAMLIsStrictYAML(t *testing.T) {
	var doc object
	if err := yaml.UnmarshalStrict(envoyYAML, &doc); err != nil {
		t.Fatal(err)
	}
}

func TestEnvoyYAMLMarksWhatWeChange(t *testing.T) {
	for _, value := range []string{"port_value: 9901", "port_value: 8080", "port_value: 9902", "request_body_buffer_limit: 33554432",
		"max_request_bytes: 33554432", "filename: /etc/warmlane/warmlane.wasm", "path: /etc/warmlane/endpoints"} {
		for line := range strings.Lines(string(envoyYAML)) {
			if strings.Contains(line, value) && !strings.Contains(line, "# EDIT") {
				t.Errorf("not marked with EDIT: %s", line)
			}
		}
		if !strings.Contains(string(envoyYAML), value) {
			t.Errorf("envoy.yaml lacks %q", value)
		}
	}
}

func TestBootstrap(t *testing.T) {
	doc := fitted(t, somewhere)
	holds(t, doc, "admin/address/socket_address", `{"address":"127.0.0.1","port_value":0}`)
	holds(t, doc, listenerPath+"/address/socket_address", `{"address":"::1","port_value":8080}`)
	holds(t, doc, vhostPath+"/request_body_buffer_limit", "1000")
	holds(t, doc, filtersPath+"/buffer/typed_config/max_request_bytes", "1000")
	holds(t, doc, wasmPath, `{"config_discovery":{"config_source":{"path_config_source":{"path":"/x/filter/warmlane.yaml","watched_directory":{"path":"/x/filter"}},`+
		`"resource_api_version":"V3"},"type_urls":["`+wasmType+`"]},"name":"warmlane"}`)
	holds(t, doc, clustersPath+"/replicas/eds_cluster_config/eds_config/path_config_source", `{"path":"/x/endpoints/replicas.yaml","watched_directory":{"path":"/x/endpoints"}}`)
	holds(t, doc, clustersPath+"/warmlane_control/load_assignment/endpoints",
		`[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"127.0.0.1","port_value":9902}}}}]}]`)
	if got := names(t, doc, filtersPath); got != "warmlane buffer warmlane-headers envoy.filters.http.router" {
		t.Errorf("filters: %s", got)
	}
	if got := names(t, doc, hcmPath+"/access_log"); got != "envoy.access_loggers.file envoy.access_loggers.file" {
		t.Errorf("access logs: %s", got)
	}
}

func TestBootstrapRoundRobin(t *testing.T) {
	s := somewhere
	s.roundRobin, s.control, s.accessLog = true, "", ""
	doc := fitted(t, s)
	if got := names(t, doc, filtersPath); got != "envoy.filters.http.router" {
		t.Errorf("filters: %s", got)
	}
	if got := names(t, doc, clustersPath); got != "replicas" {
		t.Errorf("clusters: %s", got)
	}
	if got := names(t, doc, hcmPath+"/access_log"); got != "envoy.access_loggers.stderr envoy.access_loggers.stderr" {
		t.Errorf("access logs: %s", got)
	}
	policy, _ := json.Marshal(doc.get(clustersPath + "/replicas/load_balancing_policy"))
	if !strings.Contains(string(policy), "round_robin.v3.RoundRobin") || strings.Contains(string(policy), "override_host") {
		t.Errorf("policy: %s", policy)
	}
}

func TestBootstrapRefusesBadAddresses(t *testing.T) {
	bad := somewhere
	bad.listen = "x"
	if _, err := bootstrap(bad); err == nil {
		t.Error("a bad listen address was taken")
	}
	bad = somewhere
	bad.control = "127.0.0.1:0"
	if _, err := bootstrap(bad); err == nil {
		t.Error("a bad control address was taken")
	}
}

// Client copies of the headers that steer must go before ours are added.
func TestEnvoyYAMLRemovesBeforeItAdds(t *testing.T) {
	doc := document()
	mutations, _ := doc.get(filtersPath + "/warmlane-headers/typed_config/mutations/request_mutations").([]any)
	removed := map[string]bool{}
	added := 0
	for _, each := range mutations {
		mutation, _ := each.(object)
		if name, ok := mutation["remove"].(string); ok {
			removed[name] = true
			continue
		}
		header := &tree{root: mutation}
		name, _ := header.get("append/header/key").(string)
		action, _ := header.get("append/append_action").(string)
		switch name {
		case "endpoint-load-metrics-format", "x-session-id": // a client may ask for load reports, or name a session, itself
			if action != "ADD_IF_ABSENT" {
				t.Errorf("%q is added by %s", name, action)
			}
			continue
		case "content-length":
			if action != "OVERWRITE_IF_EXISTS" {
				t.Errorf("%q is added by %s", name, action)
			}
			continue
		}
		if !removed[name] {
			t.Errorf("%q is added but a client's copy is not removed first", name)
		}
		added++
	}
	if added != 3 || len(removed) != 3 {
		t.Errorf("%d added, %v removed", added, removed)
	}
}

func TestFilterResource(t *testing.T) {
	text, err := filterResource("/x/warmlane.wasm", settings{filter: object{"routing": object{"candidates": 2}, "piggyback": object{"explain": false}}})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Resources []object `json:"resources"`
	}
	if err := yaml.UnmarshalStrict(text, &doc); err != nil || len(doc.Resources) != 1 {
		t.Fatalf("%v, %d resources", err, len(doc.Resources))
	}
	resource := &tree{root: doc.Resources[0]}
	holds(t, resource, "name", `"warmlane"`)
	holds(t, resource, "typed_config/config/vm_config/code/local/filename", `"/x/warmlane.wasm"`)
	var config object
	value, _ := resource.get("typed_config/config/configuration/value").(string)
	if err := json.Unmarshal([]byte(value), &config); err != nil {
		t.Fatal(err)
	}
	want := object{
		"role":      "route",
		"pools":     []any{object{"name": "default", "cluster": "replicas", "kv_events": true, "tokenize": "learned"}},
		"control":   object{"cluster": "warmlane_control", "authority": "control"},
		"piggyback": object{"explain": false, "load_reports": false},
		"routing":   object{"candidates": 2.0},
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("configuration %v", config)
	}
}

func TestEndpointsResource(t *testing.T) {
	f := func(want string, replicas ...replica) {
		t.Helper()
		text, err := endpointsResource(replicas)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.YAMLToJSON(text)
		if want = `{"resources":[{"@type":"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment","cluster_name":"replicas","endpoints":[{"lb_endpoints":` + want + `}]}]}`; err != nil || string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	f(`[]`)
	f(`[{"endpoint":{"address":{"socket_address":{"address":"10.0.0.7","port_value":8000}}}},{"endpoint":{"address":{"socket_address":{"address":"::1","port_value":1}}},"health_status":"DRAINING"}]`,
		replica{address: "10.0.0.7:8000"}, replica{"[::1]:1", true})
	if _, err := endpointsResource([]replica{{address: "x"}}); err == nil {
		t.Error("a bad address was taken")
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	for _, text := range []string{"one", "two"} {
		if err := replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files are left", len(files))
	}
	if err := replace(filepath.Join(dir, "none", "a"), nil); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

func TestTreeKeepsTheFirstError(t *testing.T) {
	f := func(change func(*tree), fault string) {
		t.Helper()
		doc := document()
		change(doc)
		doc.set("no/way", 1)
		if doc.err == nil || !strings.Contains(doc.err.Error(), fault) {
			t.Errorf("error %v, want %q", doc.err, fault)
		}
	}
	f(func(d *tree) { d.get("static_resources/nothing") }, "there is no static_resources/nothing")
	f(func(d *tree) { d.set("static_resources/listeners/other/address", 1) }, "there is no static_resources/listeners/other")
	f(func(d *tree) { d.set("static_resources/listeners/address", 1) }, "static_resources/listeners is not a mapping")
	f(func(d *tree) { d.take("admin/nothing") }, "there is no mapping admin/nothing")
	f(func(d *tree) { d.drop(filtersPath, "buffer", "nothing") }, "/nothing")
}
