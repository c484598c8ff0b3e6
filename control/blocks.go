package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/warmlane/warmlane/control/collect"
	"github.com/warmlane/warmlane/control/publish"
)

// blocksPage serves /v1/blocks?pool=NAME&slot=rN, for people and tests: the
// blocks that a replica is believed to have cached, by the engine's own names
// and in their order,
//
//	{"pool":"default","slot":"r0","blocks":[{"hash":1234,"copies":1}, ...]}
//
// 401 without the token, 400 if the slot is none, 404 if no replica has it or its KV events are not
// followed.
func blocksPage(collector *collect.Collector, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !publish.Allowed(w, r, token) {
			return
		}
		pool, name := r.FormValue("pool"), r.FormValue("slot")
		number, isSlot := strings.CutPrefix(name, "r")
		slot, err := strconv.ParseUint(number, 10, 16)
		if err != nil || !isSlot {
			say(w, http.StatusBadRequest, "slot: want r0, r1 and so on")
			return
		}
		blocks, ok := collector.Blocks(pool, uint16(slot))
		if !ok {
			say(w, http.StatusNotFound, "no KV events are followed there")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // nobody is left to be told
			"pool": pool, "slot": publish.Slot(uint16(slot)), "blocks": blocks,
		})
	})
}
