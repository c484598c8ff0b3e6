// Package transcript plays one script of HTTP exchanges on several hosts: the
// bare logic of a filter, its Wasm module in hostsim, a real Envoy. If all
// three agree on what came out, the glue adds nothing and the simulation tells
// the truth.
//
// A script is a JSON file. Replicas and earlier steps are named, never
// numbered by chance, so that it can say "where step one went":
//
//	{"replicas": 2, "config": {...}, "steps": [
//	  {"name": "cold", "request": {"path": "/v1/chat/completions", "body": {...}},
//	   "want": {"status": 200, "branch": "cache_miss_min_load"}},
//	  {"name": "warm", "request": {...}, "want": {"same_replica": "cold", "branch": "cache_hit"}}
//	]}
package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Script is one file of exchanges, played in order on a fresh host.
type Script struct {
	Name     string          `json:"-"` // the file's name without its ending
	About    string          `json:"about"`
	Replicas int             `json:"replicas"`
	Config   json.RawMessage `json:"config"` // the filter's, without where control is
	Steps    []Step          `json:"steps"`
}

// Step is one exchange and what must come of it.
type Step struct {
	Name    string  `json:"name"`
	Request Request `json:"request"`
	Answer  Answer  `json:"answer"`
	Want    Want    `json:"want"`
}

// Request is what the client sends.
type Request struct {
	Method  string            `json:"method"` // POST if empty
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	// Body is sent as it stands in the file; BodyText, if not empty, instead
	// of it, for bodies that are no JSON.
	Body     json.RawMessage `json:"body"`
	BodyText string          `json:"body_text"`
	// Chunk cuts the body into pieces of so many bytes; 0 sends it whole.
	Chunk int `json:"chunk"`
}

// Bytes is the body as the client sends it.
func (r *Request) Bytes() []byte {
	if r.BodyText != "" {
		return []byte(r.BodyText)
	}
	return r.Body
}

// Answer is what a replica says to it. The zero Answer is a 200 with a small
// JSON body.
type Answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// Refuse makes the replica named first refuse the connection.
	Refuse bool `json:"refuse"`
}

// Want is what must come out; what is left out is not looked at.
type Want struct {
	Status      int    `json:"status"`       // at the client
	Branch      string `json:"branch"`       // of the decision
	SameReplica string `json:"same_replica"` // the step that went to the same replica
	NotReplica  string `json:"not_replica"`  // the step that went to another one
	Routed      *bool  `json:"routed"`       // whether the filter named a replica
	Reason      string `json:"reason"`       // of a reply of the filter's own
	// Headers that must, or must not, have arrived; a value "*" stands for any.
	AtReplica       map[string]string `json:"at_replica"`
	NotAtReplica    []string          `json:"not_at_replica"`
	AtClient        map[string]string `json:"at_client"`
	NotAtClient     []string          `json:"not_at_client"`
	BodyUnchanged   bool              `json:"body_unchanged"` // at the replica
	AnswerUnchanged bool              `json:"answer_unchanged"`
}

// Result is what came out on one host.
type Result struct {
	Status         int
	Replica        string // any name that is the same for the same replica; empty if none was reached
	Named          string // what the filter wrote as destination; empty if nothing
	Branch         string
	ReplicaHeaders map[string]string
	ReplicaBody    []byte
	ClientHeaders  map[string]string
	ClientBody     []byte
}

// Host plays one exchange. It must pass answer on as the replica's.
type Host interface {
	Do(request *Request, answer *Answer) (Result, error)
}

// Load reads every script of a folder, in the order of names. Unknown keys
// are errors, so that a misspelled wish is not a wish fulfilled.
func Load(folder string) ([]*Script, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("transcripts: no .json in %s", folder)
	}
	scripts := make([]*Script, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s := &Script{Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(s); err != nil {
			return nil, fmt.Errorf("transcript %s: %w", s.Name, err)
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("transcript %s: %w", s.Name, err)
		}
		scripts[i] = s
	}
	return scripts, nil
}

func (s *Script) check() error {
	if s.Replicas < 1 || len(s.Steps) == 0 {
		return fmt.Errorf("needs replicas and steps")
	}
	seen := map[string]bool{}
	for i := range s.Steps {
		w := &s.Steps[i].Want
		for _, name := range []string{w.SameReplica, w.NotReplica} {
			if name != "" && !seen[name] {
				return fmt.Errorf("step %q: no earlier step %q", s.Steps[i].Name, name)
			}
		}
		seen[s.Steps[i].Name] = true
	}
	return nil
}

// Play runs the script on a host and returns everything that was not as it
// should be, one line for each fault.
func (s *Script) Play(h Host) error {
	var faults []string
	went := map[string]string{}
	for i := range s.Steps {
		step := &s.Steps[i]
		result, err := h.Do(&step.Request, &step.Answer)
		if err != nil {
			return fmt.Errorf("%s, step %q: %w", s.Name, step.Name, err)
		}
		went[step.Name] = result.Replica
		for _, f := range step.faults(&result, went) {
			faults = append(faults, fmt.Sprintf("%s, step %q: %s", s.Name, step.Name, f))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	return nil
}
