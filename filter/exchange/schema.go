package exchange

import (
	"errors"
	"sort"
	"strconv"
	"strings"

	"github.com/warmlane/warmlane/filter/json"
)

// field is one key of an object: what is allowed there, in words, and how to
// read it. read gets the path of the key for errors about what lies below.
type field struct {
	allowed string
	read    func(path string, v json.Value) error
}

type object map[string]field

// errValue is given by a reader whose value is not what its field allows.
var errValue = errors.New("bad value")

// parse reads v as an object with these keys and no others.
func (o object) parse(path string, v json.Value) error {
	if v.Kind != json.Object {
		return refusal(path, v, "an object")
	}
	var err error
	v.Each(func(key, value json.Value) bool {
		at := key.Text()
		f, ok := o[at]
		if path != "" {
			at = path + "." + at
		}
		if !ok {
			err = errors.New(at + ": unknown key; allowed: " + o.keys())
		} else if err = f.read(at, value); err == errValue {
			err = refusal(at, value, f.allowed)
		}
		return err == nil
	})
	return err
}

func (o object) keys() string {
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return strings.Join(keys, ", ")
}

func refusal(path string, v json.Value, allowed string) error {
	if path == "" {
		path = "configuration"
	}
	raw := string(v.Raw)
	if len(raw) > 60 {
		raw = raw[:60] + "..."
	}
	return errors.New(path + ": " + raw + " is not allowed; allowed: " + allowed)
}

// list reads an array of objects, each of which begins as start, into dst.
func list[T any](dst *[]T, start func() T, fields func(*T) object) func(string, json.Value) error {
	return func(path string, v json.Value) error {
		return each(path, v, func(at string, e json.Value) error {
			item := start()
			err := fields(&item).parse(at, e)
			*dst = append(*dst, item)
			return err
		})
	}
}

// each reads the elements of an array, each by its path.
func each(path string, v json.Value, read func(at string, e json.Value) error) error {
	if v.Kind != json.Array {
		return errValue
	}
	var err error
	i := 0
	v.Each(func(_, e json.Value) bool {
		err = read(path+"["+strconv.Itoa(i)+"]", e)
		i++
		return err == nil
	})
	return err
}

func text(dst *string) func(string, json.Value) error {
	return func(_ string, v json.Value) error {
		if v.Kind != json.String || len(v.Raw) > 4096 {
			return errValue
		}
		*dst = v.Text()
		return nil
	}
}

func texts(dst *[]string) func(string, json.Value) error {
	return func(path string, v json.Value) error {
		return each(path, v, func(at string, e json.Value) error {
			name := e.Text()
			if name == "" || len(name) > 256 {
				return refusal(at, e, "a name of 1 to 256 bytes")
			}
			*dst = append(*dst, name)
			return nil
		})
	}
}

func name(dst *string) func(string, json.Value) error {
	return spelled(dst, 64, func(c byte) bool {
		return c == '-' || c == '_' || c == '.' || alphanumeric(c) || c >= 'A' && c <= 'Z'
	})
}

func header(dst *string) func(string, json.Value) error {
	return spelled(dst, 128, func(c byte) bool { return c == '-' || c == '_' || alphanumeric(c) })
}

func path(dst *string) func(string, json.Value) error {
	return func(_ string, v json.Value) error {
		s := v.Text()
		if !strings.HasPrefix(s, "/") || len(s) > 1024 || strings.ContainsFunc(s, blankOrControl) {
			return errValue
		}
		*dst = s
		return nil
	}
}

func blankOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

func alphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func spelled(dst *string, most int, ok func(byte) bool) func(string, json.Value) error {
	return func(_ string, v json.Value) error {
		s := v.Text()
		if s == "" || len(s) > most {
			return errValue
		}
		for i := range len(s) {
			if !ok(s[i]) {
				return errValue
			}
		}
		*dst = s
		return nil
	}
}

func oneOf(dst *string, words ...string) func(string, json.Value) error {
	return func(_ string, v json.Value) error {
		for _, w := range words {
			if v.Is(w) {
				*dst = w
				return nil
			}
		}
		return errValue
	}
}

func boolean(dst *bool) func(string, json.Value) error {
	return func(_ string, v json.Value) error {
		if !v.IsBool() {
			return errValue
		}
		*dst = v.Bool()
		return nil
	}
}

func number(dst *float64, lo, hi float64) func(string, json.Value) error {
	return func(_ string, v json.Value) error {
		f, ok := v.Float()
		if !ok || !(f >= lo && f <= hi) {
			return errValue
		}
		*dst = f
		return nil
	}
}

func integer[T int | int64](dst *T, lo, hi float64) func(string, json.Value) error {
	return func(path string, v json.Value) error {
		var f float64
		if err := number(&f, lo, hi)(path, v); err != nil || f != float64(T(f)) {
			return errValue
		}
		*dst = T(f)
		return nil
	}
}
