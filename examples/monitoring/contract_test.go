package monitoring

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// contract are the metrics that users' own rules rely on, with their kind and
// labels. A line that changes here is a line in CHANGELOG.md.
const contract = `
warmlane_requests_total counter model pool status
warmlane_outcomes_total counter model outcome pool
warmlane_duration_ms_bucket counter le model pool
warmlane_ttft_ms_bucket counter le model pool
warmlane_time_per_output_token_us_bucket counter le model pool
warmlane_tokens_total counter kind model pool
warmlane_usage_missing_total counter model pool
warmlane_decisions_total counter branch model pool tier
warmlane_candidates_bucket counter le pool
warmlane_candidates_dropped_total counter filter pool
warmlane_score_permille_bucket counter le pool scorer
warmlane_matched_tokens_total counter model pool
warmlane_predicted_error_tokens_total counter model pool
warmlane_in_flight gauge pool slot
warmlane_override_misses_total counter pool
warmlane_tokenize_ms_bucket counter le outcome pool
warmlane_tokenize_total counter outcome pool
warmlane_load_age_ms_bucket counter le pool
warmlane_state_age_ms gauge
warmlane_state_generation gauge
warmlane_scan_errors_total counter kind
warmlane_panics_total counter
warmlane_control_replicas gauge pool state
warmlane_control_scrapes_total counter outcome
warmlane_control_scrape_age_seconds gauge
warmlane_control_kv_events_total counter type
warmlane_control_kv_anomalies_total counter kind
warmlane_control_kv_blocks gauge pool slot
warmlane_control_state_generation gauge
warmlane_control_state_waiters gauge
warmlane_control_state_bytes_total counter
`

func checkContract(t *testing.T, known catalogue) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(contract), "\n") {
		words := strings.Fields(line)
		s := known[words[0]]
		labels := slices.DeleteFunc(slices.Sorted(maps.Keys(s.labels)), func(l string) bool { return l == "instance" || l == "job" })
		if s.kind != words[1] || !slices.Equal(labels, words[2:]) {
			t.Errorf("%s is a %q with labels %q, want %q", words[0], s.kind, labels, words[1:])
		}
	}
}
