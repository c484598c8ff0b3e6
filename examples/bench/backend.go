package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// backendWord as the only argument makes this program the backend.
	backendWord = "backend"
	// replicaCount is how many addresses the backend has: so many replicas for Envoy and for control.
	replicaCount = 4
	// chunks is how many a stream has, and chunkGap the time between two: long enough for Envoy to pass them on one by one.
	chunks   = 100
	chunkGap = 2 * time.Millisecond
)

// Pages of an idle vLLM, as short as control accepts them.
const (
	modelsPage  = `{"object":"list","data":[{"id":"m","object":"model"}]}`
	metricsPage = "vllm:num_requests_running{model_name=\"m\"} 0\nvllm:num_requests_waiting{model_name=\"m\"} 0\n" +
		"vllm:kv_cache_usage_perc{model_name=\"m\"} 0.1\n" +
		"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"65536\"} 1\n"
	// loadReport is what vLLM adds to an answer if it is asked to.
	loadReport = "TEXT named_metrics.num_requests_waiting=0.0, named_metrics.kv_cache_usage_perc=0.1"
)

var (
	answerBody = []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1796050750,"model":"m","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"` + strings.Repeat("word ", 64) + `"},"finish_reason":"length"}],` +
		`"usage":{"prompt_tokens":512,"total_tokens":576,"completion_tokens":64,"prompt_tokens_details":{"cached_tokens":496}}}`)
	chunkBody = []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796050750,"model":"m",` +
		`"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n")
	doneBody = []byte("data: [DONE]\n\n")
)

// serveReplicas is the backend. It prints "ready" and its addresses, and serves until it is killed.
func serveReplicas(out io.Writer) error {
	server := &http.Server{Handler: replicaHandler()}
	failed := make(chan error, replicaCount)
	line := "ready"
	for range replicaCount {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		line += " " + l.Addr().String()
		go func() { failed <- server.Serve(l) }()
	}
	fmt.Fprintln(out, line)
	return <-failed
}

func replicaHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", answer)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/models", page(modelsPage))
	mux.HandleFunc("GET /metrics", page(metricsPage))
	return mux
}

func page(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// answer reads the request and sends a fixed answer: one event stream of many chunks if the client's header asks for it.
func answer(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	if r.Header.Get("accept") == "text/event-stream" {
		stream(w, r)
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	if r.Header.Get("endpoint-load-metrics-format") != "" {
		h["Endpoint-Load-Metrics"] = []string{loadReport}
	}
	w.Write(answerBody)
}

func stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flusher := w.(http.Flusher)
	for range chunks - 1 {
		w.Write(chunkBody)
		flusher.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(chunkGap):
		}
	}
	w.Write(doneBody)
}
