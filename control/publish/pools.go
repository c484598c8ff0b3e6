package publish

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// The shape of /v1/pools. What is not known is null, never 0.
type (
	poolsPage struct {
		Epoch      uint64     `json:"epoch"`
		Generation uint64     `json:"generation"`
		Pools      []poolJSON `json:"pools"`
	}
	poolJSON struct {
		Name     string        `json:"name"`
		Models   []string      `json:"models"`
		Replicas []replicaJSON `json:"replicas"`
	}
	replicaJSON struct {
		Slot     string        `json:"slot"`
		Address  string        `json:"address"`
		State    string        `json:"state"`
		Models   []string      `json:"models"`
		Adapters []adapterJSON `json:"adapters"`
		Load     loadJSON      `json:"load"`
		KV       kvJSON        `json:"kv"`
	}
	adapterJSON struct {
		Name  string `json:"name"`
		State string `json:"state"`
	}
	loadJSON struct {
		Waiting  *int32   `json:"waiting"`
		Running  *int32   `json:"running"`
		KVUsage  *float64 `json:"kv_usage"`
		HitRatio *float64 `json:"hit_ratio"`
		RPS      *float64 `json:"rps"`
		TPS      *float64 `json:"tps"`
		AgeMS    *int64   `json:"age_ms"`
	}
	kvJSON struct {
		Blocks    *int    `json:"blocks"`
		BlockSize *uint32 `json:"block_size"`
		LastSeq   *int64  `json:"last_seq"`
		Partial   *bool   `json:"partial"`
		Epoch     *uint64 `json:"epoch"`
	}
)

func (h *Handler) servePools(w http.ResponseWriter) {
	page := poolsPage{Epoch: h.Hub.epoch, Pools: []poolJSON{}}
	if s := h.Hub.Latest(); s != nil {
		page.Generation = s.Generation
		for i := range s.Pools {
			page.Pools = append(page.Pools, h.toJSON(&s.Pools[i], h.Now()))
		}
	}
	body, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		writeError(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // nobody is left to be told
}

func (h *Handler) toJSON(p *state.Pool, now time.Time) poolJSON {
	out := poolJSON{Name: p.Name, Models: p.Models, Replicas: []replicaJSON{}}
	for i := range p.Replicas {
		r := &p.Replicas[i]
		out.Replicas = append(out.Replicas, replicaJSON{
			Slot: Slot(r.Slot), Address: r.Address, State: r.Health.String(), Models: r.Models,
			Adapters: adaptersJSON(r.Adapters), Load: toLoadJSON(&r.Load, now),
			KV: h.toKVJSON(r),
		})
	}
	return out
}

// Slot is a slot's name in metrics and on /v1/pools: r0, r1 and so on.
func Slot(slot uint16) string { return "r" + strconv.Itoa(int(slot)) }

func adaptersJSON(list []state.Adapter) []adapterJSON {
	if list == nil {
		return nil
	}
	out := make([]adapterJSON, len(list))
	for i, a := range list {
		out[i] = adapterJSON{Name: a.Name, State: a.State.String()}
	}
	return out
}

func toLoadJSON(l *state.Load, now time.Time) loadJSON {
	out := loadJSON{
		Waiting: known(l.Waiting), Running: known(l.Running),
		KVUsage: ratio(l.KV), HitRatio: ratio(l.Hit), RPS: ratio(l.RPS), TPS: ratio(l.TPS),
	}
	if l.At > 0 {
		out.AgeMS = known(max(now.UnixMilli()-l.At, 0))
	}
	return out
}

func (h *Handler) toKVJSON(r *state.Replica) kvJSON {
	kv, ok := h.KV.of(r.Slot)
	if !ok {
		return kvJSON{BlockSize: nonZero(r.BlockSize)}
	}
	if kv.BlockSize == 0 {
		kv.BlockSize = r.BlockSize
	}
	return kvJSON{
		Blocks: &kv.Blocks, BlockSize: nonZero(kv.BlockSize), LastSeq: known(kv.LastSeq),
		Partial: &kv.Partial, Epoch: &kv.Epoch,
	}
}

func known[T int32 | int64](v T) *T {
	if v < 0 {
		return nil
	}
	return &v
}

func nonZero(v uint32) *uint32 {
	if v == 0 {
		return nil
	}
	return &v
}

// ratio prints a float32 with the digits it has, not those a float64 adds.
func ratio(f float32) *float64 {
	if f != f {
		return nil
	}
	v := math.Round(float64(f)*1e4) / 1e4
	return &v
}
