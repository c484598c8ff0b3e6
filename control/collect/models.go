package collect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/warmlane/warmlane/filter/state"
)

// served is what an engine serves, both sorted. nil means not known.
type served struct {
	models   []string
	adapters []state.Adapter
}

// parseModels reads the answer of /v1/models. An entry with a parent is an
// adapter; being listed, it is loaded. Names above the caps of package state
// are left out, since no filter could be told of them.
func parseModels(body []byte) (served, error) {
	var list struct {
		Data []struct {
			ID     string  `json:"id"`
			Parent *string `json:"parent"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return served{}, fmt.Errorf("/v1/models: %w", err)
	}
	if list.Data == nil {
		return served{}, errors.New(`/v1/models: no list under "data"`)
	}
	out := served{models: []string{}, adapters: []state.Adapter{}}
	for _, m := range list.Data {
		switch {
		case m.ID == "" || len(m.ID) > state.MaxName:
		case m.Parent != nil && *m.Parent != "":
			out.adapters = append(out.adapters, state.Adapter{Name: m.ID, State: state.AdapterLoaded})
		default:
			out.models = append(out.models, m.ID)
		}
	}
	out.sort()
	return out, nil
}

func (s *served) sort() {
	slices.Sort(s.models)
	s.models = slices.Compact(s.models)
	s.models = s.models[:min(len(s.models), state.MaxModels)]
	slices.SortFunc(s.adapters, func(a, b state.Adapter) int { return strings.Compare(a.Name, b.Name) })
	s.adapters = slices.Compact(s.adapters)
	s.adapters = s.adapters[:min(len(s.adapters), state.MaxAdapters)]
}

// lists reports whether name is among the adapters.
func (s *served) lists(name string) bool {
	return slices.ContainsFunc(s.adapters, func(a state.Adapter) bool { return a.Name == name })
}
