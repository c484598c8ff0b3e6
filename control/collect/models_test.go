package collect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/state"
)

func TestCapturedModels(t *testing.T) {
	f := func(name string, models []string, adapters []state.Adapter) {
		t.Helper()
		got, err := parseModels(fixture(t, name))
		if err != nil || !slices.Equal(got.models, models) || !slices.Equal(got.adapters, adapters) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.models == nil || got.adapters == nil {
			t.Errorf("%s: a list that was given is not known", name)
		}
	}
	f("models.json", []string{"tiny"}, nil)
	f("lora-models.json", []string{"tiny"}, []state.Adapter{{Name: "lora-a", State: state.AdapterLoaded}})
}

func TestWrongModels(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if got, err := parseModels([]byte(body)); err == nil {
			t.Errorf("%q: accepted as %+v", body, got)
		}
	}
	f("")
	f("<html>")
	f("{}")
	f(`{"data":null}`)
	f(`{"data":{"id":"m"}}`)
	f(`{"data":[{"id":7}]}`)
}

// A server that lists more than the state can hold must not make a state that
// no filter reads.
func TestModelsKeepToTheCaps(t *testing.T) {
	var b strings.Builder
	for i := range 2 * state.MaxAdapters {
		fmt.Fprintf(&b, `{"id":"m%d"},{"id":"a%d","parent":"m0"},`, i, i)
	}
	got, err := parseModels([]byte(`{"data":[` + b.String() + `{"id":"` + strings.Repeat("x", state.MaxName+1) + `"},{"id":""}]}`))
	if err != nil || len(got.models) != state.MaxModels || len(got.adapters) != state.MaxAdapters {
		t.Errorf("%d models, %d adapters, %v", len(got.models), len(got.adapters), err)
	}
}

func FuzzModels(f *testing.F) {
	f.Add(fixture(f, "lora-models.json"))
	f.Add([]byte(`{"data":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseModels(body)
		if err == nil && (got.models == nil || !slices.IsSorted(got.models)) {
			t.Fatalf("%+v", got)
		}
	})
}
