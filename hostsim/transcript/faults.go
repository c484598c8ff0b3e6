package transcript

import (
	"bytes"
	"fmt"
)

// faults compares what came out with what was wanted.
func (s *Step) faults(r *Result, went map[string]string) []string {
	w, f := &s.Want, list{}
	f.addIf(w.Status != 0 && w.Status != r.Status, "status %d, want %d", r.Status, w.Status)
	f.addIf(w.Branch != "" && w.Branch != r.Branch, "branch %q, want %q", r.Branch, w.Branch)
	f.addIf(w.SameReplica != "" && (r.Replica == "" || r.Replica != went[w.SameReplica]),
		"went to %q, want %q as step %q", r.Replica, went[w.SameReplica], w.SameReplica)
	f.addIf(w.NotReplica != "" && (r.Replica == "" || r.Replica == went[w.NotReplica]),
		"went to %q, want another than step %q", r.Replica, w.NotReplica)
	f.addIf(w.Routed != nil && *w.Routed != (r.Named != ""), "destination %q, want one: %v", r.Named, w.Routed != nil && *w.Routed)
	reason := r.ClientHeaders["x-warmlane-reason"]
	f.addIf(w.Reason != "" && w.Reason != reason, "reason %q, want %q", reason, w.Reason)
	f.headers("at the replica", r.ReplicaHeaders, w.AtReplica, w.NotAtReplica)
	f.headers("at the client", r.ClientHeaders, w.AtClient, w.NotAtClient)
	f.addIf(w.BodyUnchanged && !bytes.Equal(r.ReplicaBody, s.Request.Bytes()), "the replica got another body: %.200q", r.ReplicaBody)
	f.addIf(w.AnswerUnchanged && string(r.ClientBody) != s.Answer.Body, "the client got another answer: %.200q", r.ClientBody)
	return f
}

type list []string

func (l *list) addIf(bad bool, format string, args ...any) {
	if bad {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

func (l *list) headers(where string, got, want map[string]string, unwanted []string) {
	for name, value := range want {
		g, ok := got[name]
		l.addIf(!ok || value != "*" && g != value, "%s %s is %q (there: %v), want %q", where, name, g, ok, value)
	}
	for _, name := range unwanted {
		g, ok := got[name]
		l.addIf(ok, "%s %s is %q, want none", where, name, g)
	}
}
