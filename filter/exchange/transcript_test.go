package exchange

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
	"github.com/warmlane/warmlane/hostsim/transcript"
)

func TestTranscripts(t *testing.T) {
	scripts, err := transcript.Load("../testdata/transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.Name, func(t *testing.T) {
			h := newNative(t, s.Replicas, string(s.Config))
			if err := s.Play(h); err != nil {
				t.Error(err)
			}
			if n := h.inFlight(); n != 0 {
				t.Errorf("%d requests are still on the books", n)
			}
		})
	}
}

// native plays exchanges on the bare logic. It stands in for Envoy and for
// the native filters behind ours.
type native struct {
	worker   *Worker
	store    *shared.Mem
	now      int64
	replicas []string
}

// newNative returns a host whose worker has heard of the replicas.
func newNative(t testing.TB, replicas int, config string) *native {
	t.Helper()
	c, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	h := &native{store: shared.NewMem(), now: 1_800_000_000_000}
	h.worker = h.newWorker(c, 1)
	p := state.Pool{Name: c.PoolNames()[0], Models: []string{"m", "sql"}}
	for i := range replicas {
		h.replicas = append(h.replicas, "10.0.0."+strconv.Itoa(i+1)+":8000")
		p.Replicas = append(p.Replicas, state.Replica{
			Slot: uint16(i), Incarnation: 1, Address: h.replicas[i], Health: state.Healthy,
			Models: p.Models, Load: state.NoLoad(),
		})
	}
	h.publish(t, &state.Snapshot{Epoch: 1, Generation: 1, Pools: []state.Pool{p}})
	return h
}

func (h *native) newWorker(c *Config, seed uint64) *Worker {
	return NewWorker(c, Env{Store: h.store.View(), Now: func() int64 { return h.now }, Dice: func() uint64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return seed
	}})
}

// publish does what the leading VM does with new state.
func (h *native) publish(t testing.TB, s *state.Snapshot) {
	t.Helper()
	framed := state.AppendSnapshot(make([]byte, shared.SequenceSize), s)
	if _, err := shared.Publish(h.store.View(), []byte(shared.StateKey), framed); err != nil {
		t.Fatal(err)
	}
	h.worker.Announce(h.now)
}

func (h *native) inFlight() (n int) {
	for _, p := range h.worker.pools {
		p.router.Tick(h.now)
		for slot := range p.router.Slots() {
			n += p.router.InFlight(slot)
		}
	}
	return n
}

// mapHeaders walks a map.
type mapHeaders struct{ rest [][2][]byte }

func headersOf(m map[string]string) *mapHeaders {
	h := &mapHeaders{}
	for k, v := range m {
		h.rest = append(h.rest, [2][]byte{[]byte(k), []byte(v)})
	}
	return h
}

func (h *mapHeaders) Next() (name, value []byte, ok bool) {
	if len(h.rest) == 0 {
		return nil, nil, false
	}
	kv := h.rest[0]
	h.rest = h.rest[1:]
	return kv[0], kv[1], true
}

func apply(v *Verdict, headers map[string]string) {
	for _, name := range v.Remove {
		delete(headers, name)
	}
	for _, p := range v.Add {
		headers[p.Name] = string(p.Value)
	}
}

// Do implements transcript.Host.
func (h *native) Do(request *transcript.Request, answer *transcript.Answer) (transcript.Result, error) {
	h.now += 50
	e := h.worker.NewExchange()
	defer e.Settle(func() []byte { return nil })
	sent, named, reply := h.ask(e, request)
	r := transcript.Result{Branch: e.choice.Branch.String(), Named: named, ReplicaHeaders: sent, ReplicaBody: request.Bytes()}
	if reply != nil {
		r.Status, r.ClientBody = reply.Status, reply.Body
		r.ClientHeaders = map[string]string{ReasonHeader: string(reply.Reason), "content-type": "application/json"}
		return r, nil
	}
	r.Replica = h.reached(named, answer.Refuse)
	h.answer(e, r.Replica, answer, &r)
	return r, nil
}

// ask plays the request's side and gives the headers a replica would see.
func (h *native) ask(e *Exchange, request *transcript.Request) (sent map[string]string, named string, reply *Reply) {
	method := request.Method
	if method == "" {
		method = "POST"
	}
	sent = map[string]string{":method": method, ":path": request.Path, "x-warmlane-explain": "1"}
	maps.Copy(sent, request.Headers)
	body := request.Bytes()
	v := e.RequestHeaders(headersOf(sent), len(body) == 0)
	apply(v, sent)
	properties := map[string]string{}
	for at := 0; e.ReadsRequest(); {
		n := len(body) - at
		if request.Chunk > 0 {
			n = min(n, request.Chunk)
		}
		v = e.RequestBody(body[at:at+n], at+n == len(body))
		at += n
		for _, p := range v.Properties {
			properties[p.Name] = string(p.Value)
		}
		reply = v.Reply
	}
	for header, property := range map[string]string{
		"x-gateway-destination-endpoint": destinationProperty, "x-warmlane-pool": poolProperty, "x-warmlane-work": workProperty,
	} {
		delete(sent, header)
		if value, ok := properties[property]; ok {
			sent[header] = value
		}
	}
	return sent, properties[destinationProperty], reply
}

// reached is the replica that override_host picks, and its retry.
func (h *native) reached(named string, refuse bool) string {
	order := strings.Split(named, ",")
	if named == "" {
		order = h.replicas
	}
	if refuse {
		return order[1]
	}
	return order[0]
}

func (h *native) answer(e *Exchange, replica string, answer *transcript.Answer, r *transcript.Result) {
	r.Status = max(answer.Status, 200)
	r.ClientHeaders = map[string]string{":status": strconv.Itoa(r.Status)}
	maps.Copy(r.ClientHeaders, answer.Headers)
	apply(e.ResponseHeaders(headersOf(r.ClientHeaders), by([]byte(replica)), answer.Body == ""), r.ClientHeaders)
	r.ClientBody = []byte(answer.Body)
	for i := range r.ClientBody {
		e.ResponseBody(r.ClientBody[i : i+1])
	}
	e.ResponseEnd()
}
