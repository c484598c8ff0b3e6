package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxSettings bounds the configuration file.
const maxSettings = 4 << 20

// object is a document's mapping, in the types that JSON has.
type object = map[string]any

// settings are what the file of -config holds. Each part is merged over the defaults of quickstart.
type settings struct {
	filter  object // the plugin's configuration
	control object // control's configuration
}

// parseSettings reads the YAML of a settings file. What is in the parts is checked by those who read them, the
// plugin and control; here only the shape is.
func parseSettings(text string) (settings, error) {
	var doc object
	if err := yaml.UnmarshalStrict([]byte(text), &doc); err != nil {
		return settings{}, err
	}
	var s settings
	parts := map[string]*object{"filter": &s.filter, "control": &s.control}
	for _, key := range sortedKeys(doc) {
		part, known := parts[key]
		if !known {
			return settings{}, fmt.Errorf("%s: unknown key; allowed are control and filter", key)
		}
		value, isObject := doc[key].(object)
		if !isObject && doc[key] != nil {
			return settings{}, fmt.Errorf("%s: want a mapping", key)
		}
		*part = value
	}
	return s, nil
}

// reloadSettings looks at the settings file. changed is false if it holds what it held before, be that right or wrong.
func reloadSettings(f *watchedFile) (s settings, changed bool, err error) {
	text, changed, err := f.look()
	if err != nil || !changed {
		return settings{}, false, err
	}
	if s, err = parseSettings(text); err != nil {
		return settings{}, false, fmt.Errorf("%s: %w", f.path, err)
	}
	return s, true, nil
}

// merge lays over on top of base as RFC 7396 says: mappings are merged key by key, everything else is replaced, null removes.
// Neither argument is changed.
func merge(base, over object) object {
	out := make(object, len(base)+len(over))
	for key, value := range base {
		out[key] = value
	}
	for key, value := range over {
		below, _ := out[key].(object)
		switch value := value.(type) {
		case nil:
			delete(out, key)
		case object:
			out[key] = merge(below, value)
		default:
			out[key] = value
		}
	}
	return out
}

// filterConfig is the plugin's configuration as JSON: the one in envoy.yaml with the file's on top.
func filterConfig(defaults string, s settings) (string, error) {
	var base object
	if err := json.Unmarshal([]byte(defaults), &base); err != nil {
		return "", fmt.Errorf("the plugin's configuration in envoy.yaml: %w", err)
	}
	text, err := json.MarshalIndent(merge(base, s.filter), "", "  ")
	return string(text), err
}

func sortedKeys(o object) []string {
	keys := make([]string, 0, len(o))
	for key := range o {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
