package wire

import (
	"net/http"
	"strconv"
	"time"

	"encoding/json"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// debugBlocks lists what the engine has cached:
//
//	{"block_size":16,"next_seq":7,"unsent":0,"total":31249,"usage":0.0,
//	 "blocks":[{"hash":u64,"parent":u64|null,"copies":1,"refs":0,"extra":null|[..],"tokens":[..]}]}
//
// When unsent is 0, whoever applied all batches below next_seq holds exactly
// these blocks. With ?tokens=0 the tokens are left out.
func (s *Server) debugBlocks(x *exchange) {
	x.quiet = true
	tokens := x.r.URL.Query().Get("tokens") != "0"
	var b []byte
	s.cfg.Runner.Do(func(e *engine.Engine, _ time.Duration) { b = s.appendBlocks(nil, e, tokens) })
	x.json(http.StatusOK, b)
}

func (s *Server) appendBlocks(b []byte, e *engine.Engine, tokens bool) []byte {
	var next uint64
	if s.cfg.Events != nil {
		next = s.cfg.Events.Next()
	}
	_, _, usage := e.Load()
	b = append(b, `{"block_size":`+strconv.Itoa(s.cfg.Engine.BlockSize)...)
	b = append(b, `,"next_seq":`+strconv.FormatUint(next, 10)...)
	b = append(b, `,"unsent":`+strconv.Itoa(e.Unsent())...)
	b = append(b, `,"total":`+strconv.Itoa(s.cfg.Engine.Blocks-1)...)
	b = append(b, `,"usage":`+pyFloat(usage)...)
	b = append(b, `,"blocks":[`...)
	for i, bl := range e.Blocks() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendBlock(b, &bl, tokens)
	}
	return append(b, "]}\n"...)
}

func appendBlock(b []byte, bl *engine.Block, tokens bool) []byte {
	b = strconv.AppendUint(append(b, `{"hash":`...), bl.Hash.Uint64(), 10)
	b = append(b, `,"parent":`...)
	if bl.Root {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, bl.Parent.Uint64(), 10)
	}
	b = append(b, `,"copies":`+strconv.Itoa(bl.Copies)+`,"refs":`+strconv.Itoa(bl.Refs)+`,"extra":`...)
	b = appendTexts(b, bl.Extra)
	if tokens {
		b = append(b, `,"tokens":[`...)
		for i, t := range bl.Tokens {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, uint64(t), 10)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendTexts(b []byte, list []string) []byte {
	if len(list) == 0 {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, s)
	}
	return append(b, ']')
}

// debugRequests lists the requests that ended last, oldest first; ?n= bounds their number.
func (s *Server) debugRequests(x *exchange) {
	x.quiet = true
	n, _ := strconv.Atoi(x.r.URL.Query().Get("n"))
	x.value(s.cfg.Journal.Last(n))
}

// debugForget clears that list.
func (s *Server) debugForget(x *exchange) {
	x.quiet = true
	s.cfg.Journal.Clear()
	x.send(http.StatusNoContent, "", nil)
}

func (s *Server) debugFaults(x *exchange) {
	x.quiet = true
	x.value(s.cfg.Faults.Get())
}

// debugSetFaults changes the faults that the body names and does what it asks
// for. When the answer comes the action is done: it spares the connection the
// answer takes. Only after an exit there is none.
func (s *Server) debugSetFaults(x *exchange) {
	x.quiet = true
	if !x.read() {
		return
	}
	action, err := s.cfg.Faults.Merge(x.body)
	if err != nil {
		x.refuse(badRequest(err.Error(), ""))
		return
	}
	s.applySlow()
	if action != (Action{}) {
		x.w.Header().Set("Connection", "close")
		s.cfg.Act(action, x.conn())
	}
	x.value(s.cfg.Faults.Get())
}

// debugHeal switches all faults off.
func (s *Server) debugHeal(x *exchange) {
	x.quiet = true
	if err := s.cfg.Faults.Set(Faults{}); err != nil {
		x.refuse(badRequest(err.Error(), ""))
		return
	}
	s.applySlow()
	x.value(s.cfg.Faults.Get())
}

// applySlow hands the slowness to the engine.
func (s *Server) applySlow() {
	slow := s.cfg.Faults.Get().Slow
	s.cfg.Runner.Do(func(e *engine.Engine, _ time.Duration) { e.SetSlow(slow) })
}

// value sends anything as JSON.
func (x *exchange) value(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		x.refuse(engineDead)
		return
	}
	x.json(http.StatusOK, b)
}
