package wire

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// frozen keeps the page that a stale exporter goes on serving.
type frozen struct {
	mu   sync.Mutex
	page []byte
}

const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// metrics serves /metrics, or what its fault makes of it.
func (s *Server) metrics(x *exchange) {
	x.quiet = true
	switch s.cfg.Faults.Get().Metrics {
	case "hang":
		x.wait()
	case "error":
		x.refuse(engineDead)
	case "empty":
		x.send(http.StatusOK, metricsType, nil)
	case "garbage":
		x.send(http.StatusOK, metricsType, []byte("vllm:num_requests_running{engine=\"0\" 3\n\x00\xff{{{\nvllm:num_requests_waiting NaN NaN NaN\n"))
	case "huge":
		x.huge()
	case "stale":
		x.send(http.StatusOK, metricsType, s.stalePage())
	default:
		s.thaw()
		x.send(http.StatusOK, metricsType, s.metricsPage())
	}
}

// stalePage is the page as it was when it was first asked for after going stale.
func (s *Server) stalePage() []byte {
	s.frozen.mu.Lock()
	defer s.frozen.mu.Unlock()
	if s.frozen.page == nil {
		s.frozen.page = s.metricsPage()
	}
	return s.frozen.page
}

func (s *Server) thaw() {
	s.frozen.mu.Lock()
	defer s.frozen.mu.Unlock()
	s.frozen.page = nil
}

// huge sends the page with 64 MB of other series before it.
func (x *exchange) huge() {
	x.entry.Status = http.StatusOK
	x.w.Header().Set("Content-Type", metricsType)
	line := []byte(strings.Repeat(`other_series{label="`+strings.Repeat("x", 200)+"\"} 1.0\n", 256))
	for range 64 << 20 / len(line) {
		if _, err := x.w.Write(line); err != nil {
			return
		}
	}
	_, _ = x.w.Write(x.s.metricsPage())
}

// metricsPage writes the families of vLLM 0.32 in its order, without those that
// describe the Python process.
func (s *Server) metricsPage() []byte {
	var st engine.Stats
	s.cfg.Runner.Do(func(e *engine.Engine, _ time.Duration) { st = e.Stats() })
	e := &exposition{b: make([]byte, 0, 48<<10), created: pyMetric(unix(s.started)), labels: []string{"engine", "0", "model_name", s.cfg.Models[0]}}
	if s.cfg.OldNames {
		e.labels = e.labels[2:]
	}
	s.process(e)
	s.flops(e)
	s.gauges(e, &st)
	s.cacheCounters(e, &st)
	s.tokenCounters(e, &st)
	s.requestCounters(e, &st)
	s.histograms(e, &st)
	s.configInfo(e, &st)
	s.httpFamilies(e)
	return e.b
}

func (s *Server) process(e *exposition) {
	labels := e.labels
	e.labels = nil
	e.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", sample{nil, unix(s.started)})
	e.labels = labels
}

// flops are counters that vLLM has and never moves on this kind of machine.
func (s *Server) flops(e *exposition) {
	if s.cfg.OldNames {
		return
	}
	const use = " (for Model Flops Utilization calculations)."
	e.counter("vllm:estimated_flops_per_gpu", "Estimated number of floating point operations per GPU"+use, one(0)...)
	e.counter("vllm:estimated_read_bytes_per_gpu", "Estimated number of bytes read from memory per GPU"+use, one(0)...)
	e.counter("vllm:estimated_write_bytes_per_gpu", "Estimated number of bytes written to memory per GPU"+use, one(0)...)
}

func (s *Server) gauges(e *exposition, st *engine.Stats) {
	e.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", one(float64(st.Running))...)
	e.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", one(float64(st.Waiting))...)
	if s.cfg.OldNames {
		e.gauge("vllm:gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage.", one(st.Usage)...)
		return
	}
	e.gauge("vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for"+
		" scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all"+
		" reasons equals vllm:num_requests_waiting.",
		sample{[]string{"reason", "capacity"}, float64(st.Waiting - min(st.Deferred, st.Waiting))},
		sample{[]string{"reason", "deferred"}, float64(min(st.Deferred, st.Waiting))})
	e.gauge("vllm:engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake;"+
		" weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
		sample{[]string{"sleep_state", "awake"}, 1}, sample{[]string{"sleep_state", "weights_offloaded"}, 0},
		sample{[]string{"sleep_state", "discard_all"}, 0})
	e.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", one(st.Usage)...)
}

func (s *Server) cacheCounters(e *exposition, st *engine.Stats) {
	prefix := "vllm:"
	if s.cfg.OldNames {
		prefix = "vllm:gpu_"
	}
	e.counter(prefix+"prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", one(float64(st.Queried))...)
	e.counter(prefix+"prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", one(float64(st.Hit))...)
	if !s.cfg.OldNames {
		e.counter("vllm:external_prefix_cache_queries", "External prefix cache queries from KV connector cross-instance cache sharing,"+
			" in terms of number of queried tokens.", one(0)...)
		e.counter("vllm:external_prefix_cache_hits", "External prefix cache hits from KV connector cross-instance cache sharing,"+
			" in terms of number of cached tokens.", one(0)...)
		e.counter("vllm:mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", one(0)...)
		e.counter("vllm:mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", one(0)...)
	}
	e.counter("vllm:num_preemptions", "Cumulative number of preemption from the engine.", one(float64(st.Preemptions))...)
}

func (s *Server) tokenCounters(e *exposition, st *engine.Stats) {
	e.counter("vllm:prompt_tokens", "Number of prefill tokens processed.", one(float64(st.Prefilled))...)
	if !s.cfg.OldNames {
		hit := float64(st.Hit)
		source := func(name string, v float64) sample { return sample{[]string{"source", name}, v} }
		e.counter("vllm:prompt_tokens_by_source", "Number of prompt tokens by source.",
			source("local_compute", max(float64(st.Prefilled)-hit, 0)), source("local_cache_hit", hit), source("external_kv_transfer", 0))
		e.counter("vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external).", one(hit)...)
		e.counter("vllm:prompt_tokens_cached_by_source", "Prefix-cache hit tokens by the cache tier that supplied them: device (local"+
			" HBM), host (offloaded to DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at"+
			" admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
			source("device", hit), source("host", 0), source("p2p", 0), source("disk", 0), source("external_unspecified", 0))
	}
	e.counter("vllm:generation_tokens", "Number of generation tokens processed.", one(float64(st.Generated))...)
}

// requestCounters: aborted requests are not counted, as in vLLM.
func (s *Server) requestCounters(e *exposition, st *engine.Stats) {
	var done []sample
	for _, reason := range []string{"stop", "length", "abort", "error", "repetition"} {
		done = append(done, sample{[]string{"finished_reason", reason}, float64(st.Finished[engine.Finish(reason)])})
	}
	e.counter("vllm:request_success", "Count of successfully processed requests.", done...)
	if s.cfg.OldNames {
		return
	}
	labels := e.labels
	e.labels = labels[2:]
	e.counter("vllm:admission_rejections", "Number of admission attempts rejected by a queue limit, by reason.",
		sample{[]string{"reason", "max_num_queued_reqs"}, float64(st.Rejected)}, sample{[]string{"reason", "max_num_queued_tokens"}, 0})
	e.labels = labels
}

func (s *Server) histograms(e *exposition, st *engine.Stats) {
	gap := "vllm:inter_token_latency_seconds"
	if s.cfg.OldNames {
		gap = "vllm:time_per_output_token_seconds"
	}
	e.histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", &st.PromptLen)
	e.histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", &st.AnswerLen)
	e.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", &st.Steps)
	e.histogram("vllm:request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.", &st.MaxTokens)
	e.histogram("vllm:request_params_n", "Histogram of the n request parameter.", &st.RequestCopies)
	e.histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", &st.MaxTokens)
	e.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &st.TTFT)
	e.histogram(gap, "Histogram of inter-token latency in seconds.", &st.TokenGap)
	e.histogram("vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", &st.PerToken)
	e.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &st.Latency)
	e.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &st.Queue)
	e.histogram("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", &st.Inference)
	e.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", &st.Prefill)
	e.histogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", &st.Decode)
	e.histogram("vllm:request_num_preemptions", "Histogram of the number of times a request was preempted.", &st.Preempted)
	e.histogram("vllm:request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding cached tokens).", &st.Computed)
}

// configInfo writes the two families whose labels are the news.
func (s *Server) configInfo(e *exposition, st *engine.Stats) {
	labels := e.labels
	e.labels = nil
	var seen []sample
	for _, names := range sortedKeys(st.Adapters) {
		at := unix(s.cfg.Runner.Wall(st.Adapters[names]))
		// A name that is active in either way stands in both lists, as seen in vLLM.
		seen = append(seen, sample{[]string{"max_lora", strconv.Itoa(s.cfg.MaxLoRAs),
			"running_lora_adapters", names, "waiting_lora_adapters", names}, at})
	}
	if len(seen) > 0 {
		e.gauge("vllm:lora_requests_info", "Running stats on lora requests.", seen...)
	}
	e.gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", sample{s.cacheLabels(), 1})
	e.labels = labels
}

// cacheLabels are those of vLLM 0.32, with the values of a text model on one GPU.
func (s *Server) cacheLabels() []string {
	c := s.cfg.Engine
	size, blocks := strconv.Itoa(c.BlockSize), strconv.Itoa(c.Blocks)
	return []string{
		"_block_size_resolved", "True", "block_size", size, "cache_dtype", "auto", "cache_hit_alignment_tokens", "None",
		"effective_attention_block_size", size, "enable_mamba_shared_prefix_checkpoint", "False", "enable_prefix_caching", "True",
		"engine", "0", "gpu_memory_utilization", "0.92", "hash_block_size", "None", "is_attention_free", "False",
		"kv_cache_dtype_skip_layers", "[]", "kv_cache_layout", "None",
		"kv_cache_max_concurrency", pyFloat(float64(c.Blocks*c.BlockSize) / float64(c.MaxModelLen)),
		"kv_cache_memory_bytes", "None", "kv_cache_size_tokens", strconv.Itoa(c.Blocks * c.BlockSize),
		"kv_offloading_backend", "native", "kv_offloading_size", "None", "kv_sharing_fast_prefill", "False",
		"mamba_block_size", "None", "mamba_cache_dtype", "auto", "mamba_cache_mode", "none", "mamba_page_size_padded", "None",
		"mamba_ssm_cache_dtype", "float32", "num_cpu_blocks", "None", "num_gpu_blocks", blocks, "num_gpu_blocks_override", blocks,
		"prefix_cache_retention_interval", "0", "prefix_caching_hash_algo", "sha256", "prefix_match_unit", "None",
		"replayssm_buffer_len", "16", "skip_page_size_padded", "None", "sliding_window", "None", "swa_bounded_replay", "True",
		"use_kda_recoverssm", "False", "use_replayssm", "False", "user_specified_block_size", "True",
	}
}

func (s *Server) httpFamilies(e *exposition) {
	s.http.mu.Lock()
	defer s.http.mu.Unlock()
	var keys [][3]string
	for k := range s.http.n {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	var samples []sample
	for _, k := range keys {
		samples = append(samples, sample{[]string{"handler", k[0], "method", k[1], "status", k[2]}, float64(s.http.n[k])})
	}
	e.labels = nil
	e.counter("http_requests", "Total number of requests by method, status and handler.", samples...)
}

func sortedKeys(m map[string]time.Duration) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
