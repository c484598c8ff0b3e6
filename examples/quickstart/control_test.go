package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// script writes a program for /bin/sh and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestControlConfig(t *testing.T) {
	kv := []kvSource{{}, {events: "tcp://[::1]:5557"}, {events: "tcp://[::1]:7", replay: "tcp://[::1]:8"}}
	f := func(file, pool string, s settings) {
		t.Helper()
		text, err := controlConfig("127.0.0.1:0", []replica{{address: "10.0.0.7:8000"}, {address: "[::1]:1"}, {address: "[::1]:2"}, {address: "[::1]:3"}}, kv, file, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.YAMLToJSON(text)
		if err != nil || !strings.Contains(string(got), pool) || !strings.Contains(string(got), `"listen":"127.0.0.1:0"`) {
			t.Errorf("%s, %v, want %s", got, err, pool)
		}
	}
	f("", `"pools":[{"kv_events":true,"name":"default","replicas":["10.0.0.7:8000",`+
		`{"address":"[::1]:1","kv_events":[{"endpoint":"tcp://[::1]:5557"}]},`+
		`{"address":"[::1]:2","kv_events":[{"endpoint":"tcp://[::1]:7","replay":"tcp://[::1]:8"}]},"[::1]:3"]}]`, settings{})
	f("/x/list", `"pools":[{"kv_events":true,"name":"default","replicas_file":"/x/list"}]`, settings{})
	f("", `"scrape":{"interval":"1s","timeout":"3s"}`, settings{control: object{"scrape": object{"interval": "1s", "timeout": "3s"}}})
	f("", `"scrape":{"interval":"250ms"}`, settings{})
}

func TestCheckControl(t *testing.T) {
	program := script(t, `test "$1 $3" = "-config -check" && test "$2" = good || { echo "pools: at least one is needed" >&2; exit 1; }`)
	if err := checkControl(t.Context(), program, "good"); err != nil {
		t.Error(err)
	}
	if err := checkControl(t.Context(), program, "bad"); err == nil || !strings.Contains(err.Error(), "pools: at least one is needed") {
		t.Errorf("error %v", err)
	}
}

func TestWarden(t *testing.T) {
	var log bytes.Buffer
	w := &warden{program: script(t, `echo "ready http://127.0.0.1:4242"; exec sleep 60`), config: "c.yaml", log: &log}
	defer w.stop()
	address, err := w.begin(t.Context())
	if err != nil || address != "127.0.0.1:4242" {
		t.Fatalf("%q, %v", address, err)
	}
	for _, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		w.process.Kill()
		<-w.died()
		if pause := w.mourn(); pause != want {
			t.Errorf("pause %v, want %v", pause, want)
		}
		if w.died() != nil {
			t.Error("a control that is not there can die")
		}
		<-w.due
		if err := w.start(); err != nil {
			t.Fatal(err)
		}
	}
	w.started = time.Now().Add(-2 * soundLife)
	if pause := w.mourn(); pause != firstPause {
		t.Errorf("after a sound life the pause is %v", pause)
	}
	w.started = time.Now()
	for range 20 {
		w.mourn()
	}
	if w.pause != longestPause {
		t.Errorf("the pause grows to %v", w.pause)
	}
	if err := w.restart(); err != nil || w.process == nil {
		t.Errorf("restart: %v", err)
	}
}

func TestWardenTellsWhyControlDoesNotStart(t *testing.T) {
	w := &warden{program: script(t, "echo address already in use >&2; exit 1")}
	if _, err := w.begin(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error %v", err)
	}
	if _, err := (&warden{program: "/no/such/program"}).begin(t.Context()); err == nil {
		t.Error("no error for a program that does not exist")
	}
}

func TestUntil(t *testing.T) {
	f := func(limit time.Duration, fault string, answers ...error) {
		t.Helper()
		err := until(t.Context(), limit, func(context.Context) (bool, error) {
			if len(answers) == 0 {
				return true, nil
			}
			answer := answers[0]
			answers = answers[1:]
			return false, answer
		})
		if (err == nil) != (fault == "") || err != nil && err.Error() != fault {
			t.Errorf("error %v, want %q", err, fault)
		}
	}
	busy := errors.New("busy")
	f(time.Minute, "")
	f(time.Minute, "", busy, nil, busy)
	f(time.Minute, "refused", busy, final{errors.New("refused")})
	f(0, "gave up: nothing has been heard", nil)
	f(poll/2, "gave up: busy", busy, nil)
}
