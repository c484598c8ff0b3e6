package collect

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
)

// ErrNotMetrics says that a text has no line of the Prometheus text format.
var ErrNotMetrics = errors.New("not a metrics text")

// Total adds up the series of one metric. N 0 means that there was none, which
// is not the same as a sum of 0.
type Total struct {
	Sum float64
	N   int
}

func (t *Total) add(v float64) {
	t.Sum += v
	t.N++
}

// Sample is what one /metrics text of a vLLM engine says, over all engines and
// models in it.
type Sample struct {
	Waiting, Running Total // requests
	KV               Total // cache usage, 0 to 1, of each engine

	// Counters since the start of the engine.
	Queries, Hits Total // prefix cache, in tokens
	Finished      Total // requests
	Generated     Total // tokens
	Prompt        Total // tokens

	Awake Total // engines, of those that say whether they sleep

	Start       float64 // of the process, Unix seconds; 0 = not said
	BlockSize   uint32  // tokens; 0 = not said
	CacheTokens uint64  // of all engines; 0 = not said

	// Adapters that requests ran with or waited for, by the newest series of
	// vllm:lora_requests_info.
	Adapters []string

	Lines int // that were read as samples
	Bad   int // that were not

	oldKV, oldQueries, oldHits Total   // under the names before they lost "gpu_"
	newestLoRA                 float64 // value of the series that Adapters is from
}

// ParseExposition reads a metrics text. Lines that are wrong are counted and
// left out, so that one bad metric does not lose a scrape; a text that has
// nothing right in it is [ErrNotMetrics]. An empty text is right and says
// nothing.
//
// Names are matched exactly: each counter has a twin that ends in _created.
// Values that are NaN, infinite or negative are taken as absent.
func ParseExposition(text []byte) (Sample, error) {
	var s Sample
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		s.line(line)
	}
	if s.Lines == 0 && s.Bad > 0 {
		return Sample{}, ErrNotMetrics
	}
	s.preferNewNames()
	return s, nil
}

// preferNewNames uses what stands under an old name only if the new one is not
// there: an engine in transition exports both.
func (s *Sample) preferNewNames() {
	for _, p := range []struct{ now, old *Total }{
		{&s.KV, &s.oldKV}, {&s.Queries, &s.oldQueries}, {&s.Hits, &s.oldHits},
	} {
		if p.now.N == 0 {
			*p.now = *p.old
		}
	}
}

func (s *Sample) line(line []byte) {
	line = bytes.TrimRight(trimBlank(line), " \t\r")
	if len(line) == 0 || line[0] == '#' {
		return
	}
	n := nameLen(line)
	if n == 0 || n == len(line) {
		s.Bad++
		return
	}
	if s.series(line[:n], line[n:]) {
		s.Lines++
	} else {
		s.Bad++
	}
}

// nameLen returns how many bytes of line are a metric's name.
func nameLen(line []byte) int {
	for i, c := range line {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == ':'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(line)
}

// series takes in one series; rest is what follows the name. Most lines are
// of no interest, and are looked at no further than it takes to tell them
// from prose.
func (s *Sample) series(name, rest []byte) bool {
	switch string(name) {
	case "vllm:cache_config_info":
		return s.cacheConfig(rest)
	case "vllm:lora_requests_info":
		return s.loraInfo(rest)
	case "vllm:engine_sleep_state":
		return s.sleepState(rest)
	case "process_start_time_seconds":
		v, ok := value(rest)
		if ok && v > s.Start {
			s.Start = v
		}
		return ok
	}
	t := s.total(name)
	if t == nil {
		return plausible(rest)
	}
	v, ok := value(rest)
	if ok && v >= 0 && v <= math.MaxFloat64 {
		t.add(v)
	}
	return ok
}

// plausible tells a series from prose: a brace or a blank, and at the end a
// digit, NaN or Inf.
func plausible(rest []byte) bool {
	last := rest[len(rest)-1]
	return (rest[0] == '{' || rest[0] == ' ' || rest[0] == '\t') &&
		('0' <= last && last <= '9' || last == 'N' || last == 'f')
}

// total returns where a series of that name is added up, nil if nowhere.
func (s *Sample) total(name []byte) *Total {
	switch string(name) {
	case "vllm:num_requests_waiting":
		return &s.Waiting
	case "vllm:num_requests_running":
		return &s.Running
	case "vllm:kv_cache_usage_perc":
		return &s.KV
	case "vllm:gpu_cache_usage_perc":
		return &s.oldKV
	case "vllm:prefix_cache_queries_total":
		return &s.Queries
	case "vllm:prefix_cache_hits_total":
		return &s.Hits
	case "vllm:gpu_prefix_cache_queries_total":
		return &s.oldQueries
	case "vllm:gpu_prefix_cache_hits_total":
		return &s.oldHits
	case "vllm:request_success_total":
		return &s.Finished
	case "vllm:generation_tokens_total":
		return &s.Generated
	case "vllm:prompt_tokens_total":
		return &s.Prompt
	}
	return nil
}

// value reads what follows a series' name: labels, which are skipped, and the
// number behind them.
func value(rest []byte) (float64, bool) {
	if rest[0] == '{' {
		after, err := eachLabel(rest, nil)
		if err != nil {
			return 0, false
		}
		return number(after)
	}
	if rest[0] != ' ' && rest[0] != '\t' {
		return 0, false
	}
	return number(rest)
}

// number reads a value and perhaps a time behind it.
func number(b []byte) (float64, bool) {
	b = trimBlank(b)
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		if _, err := strconv.ParseInt(string(trimBlank(b[i:])), 10, 64); err != nil {
			return 0, false
		}
		b = b[:i]
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// eachLabel calls f, unless it is nil, with each label and returns what stands
// behind them.
func eachLabel(rest []byte, f func(label)) ([]byte, error) {
	rest = rest[1:]
	for {
		l, after, ok, err := nextLabel(rest)
		if err != nil || !ok {
			return after, err
		}
		if f != nil {
			f(l)
		}
		rest = after
	}
}

// cacheConfig reads vllm:cache_config_info, which says all in its labels, once
// for each engine. Releases without kv_cache_size_tokens give it as blocks
// times block size.
func (s *Sample) cacheConfig(rest []byte) bool {
	if rest[0] != '{' {
		return false
	}
	var block, blocks, tokens uint64
	after, err := eachLabel(rest, func(l label) {
		switch string(l.name) {
		case "block_size":
			block = labelNumber(l)
		case "num_gpu_blocks":
			blocks = labelNumber(l)
		case "kv_cache_size_tokens":
			tokens = labelNumber(l)
		}
	})
	if err != nil {
		return false
	}
	if _, ok := number(after); !ok {
		return false
	}
	if tokens == 0 {
		tokens = block * blocks
	}
	if s.BlockSize == 0 {
		s.BlockSize = uint32(block)
	}
	s.CacheTokens += tokens
	return true
}

// sleepState reads vllm:engine_sleep_state, which has a series for each engine
// and each of awake and two kinds of sleep, the one that holds being 1.
func (s *Sample) sleepState(rest []byte) bool {
	if rest[0] != '{' {
		return false
	}
	awake := false
	after, err := eachLabel(rest, func(l label) {
		awake = awake || string(l.name) == "sleep_state" && string(l.value) == "awake"
	})
	if err != nil {
		return false
	}
	v, ok := number(after)
	if ok && awake && v >= 0 && v <= math.MaxFloat64 {
		s.Awake.add(v)
	}
	return ok
}

// asleep reports whether all engines sleep. One that sleeps has given up its
// cache.
func (s *Sample) asleep() bool { return s.Awake.N > 0 && s.Awake.Sum == 0 }

// labelNumber reads a number; "None" and whatever else is none gives 0. The
// bound keeps products and sums of them far from overflow.
func labelNumber(l label) uint64 {
	n, err := strconv.ParseUint(string(l.value), 10, 31)
	if err != nil {
		return 0
	}
	return n
}

// loraInfo reads vllm:lora_requests_info, whose value is a time. Label sets of
// the past stay in the text for ever; the newest tells.
func (s *Sample) loraInfo(rest []byte) bool {
	if rest[0] != '{' {
		return false
	}
	after, err := eachLabel(rest, nil)
	if err != nil {
		return false
	}
	v, ok := number(after)
	if !ok || !(v > s.newestLoRA) {
		return ok
	}
	s.newestLoRA = v
	s.Adapters = s.Adapters[:0]
	_, err = eachLabel(rest, func(l label) {
		if n := string(l.name); n == "running_lora_adapters" || n == "waiting_lora_adapters" {
			s.addAdapters(l.text())
		}
	})
	return err == nil
}

func (s *Sample) addAdapters(list string) {
	for name := range strings.SplitSeq(list, ",") {
		if name != "" {
			s.Adapters = append(s.Adapters, name)
		}
	}
}
