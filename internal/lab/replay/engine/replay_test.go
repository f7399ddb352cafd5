package engine_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// replayConfig is a config with some zones, in JSON.
func replayConfig(zones string) []byte {
	return fmt.Appendf(nil, `{"apps": {"http": {"servers": {"main": {"listen": [":8080"], "routes": [{"handle": [{"handler": "rate_limit", "rate_limits": {%s}}]}]}}}}}`, zones)
}

const clients100 = `"clients": {"key": "{http.vars.client_ip}", "max_events": 100, "window": "1m"}, "paths": {"key": "{http.request.uri.path}", "max_events": 10, "window": "1s", "enforce": 0}`

// logLine is a line of Caddy's access log, for a request that has ended at a time.
func logLine(end float64, client, uri string) string { return logLineOf(end, 0.001, client, uri, 200) }

func logLineOf(end, duration float64, client, uri string, status int) string {
	target, _ := json.Marshal(uri)
	return fmt.Sprintf(`{"level":"info","ts":%f,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":%q,"client_ip":%q,"proto":"HTTP/1.1","method":"GET","host":"example.com","uri":%s,"headers":{}},"duration":%g,"size":1,"status":%d,"resp_headers":{}}`,
		end, client, client, target, duration, status) + "\n"
}

// inFile returns the name of a file with a log.
func inFile(t *testing.T, log string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// replayed replays a log that is given as text.
func replayed(t *testing.T, zones, log string, o replay.Options) *replay.Result {
	t.Helper()
	switch {
	case o.Logs != nil:
	case o.Suggest || o.Curve: // which read it twice
		o.Logs = []string{inFile(t, log)}
	default:
		o.Logs, o.Input = []string{"-"}, strings.NewReader(log)
	}
	r, err := engine.Replay(replayConfig(zones), &o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const noon = 1795176000 // 2026-11-20 12:00 UTC

// TestReplayOfHostileLogs: times that go back or stand still, durations and statuses that cannot be, and
// bytes that are no text are replayed or counted, and nothing else happens.
func TestReplayOfHostileLogs(t *testing.T) {
	repeat := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	for _, c := range []struct {
		name, log         string
		requests, refused int64
		late              int64
	}{
		{"the same time everywhere", repeat(500, func(int) string { return logLine(noon, "203.0.113.7", "/") }), 500, 400, 0},
		{"times that go back by hours, late", repeat(300, func(i int) string { return logLine(noon-float64(i/100)*7200+float64(i%100)*100, "203.0.113.7", "/") }), 300, 101, 200},
		{"durations that cannot be", repeat(120, func(i int) string {
			return logLineOf(noon, []float64{-5, 1e300, -1e300, 1e9, math.MaxInt64}[i%5], "203.0.113.7", "/", 200)
		}), 120, -1, -1},
		{"clients that are no addresses", logLine(noon, "203.0.113.7", "/") + repeat(120, func(i int) string { return logLine(noon, "nobody", "/") }), 121, -1, 0},
		{"targets that are none", repeat(120, func(i int) string {
			return logLine(noon, "203.0.113.7", []string{"%zz", "*", "http://[::1", "/\x1b[31m%1b%0a"}[i%4])
		}), 120, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := replayed(t, clients100, c.log, replay.Options{})
			z := r.Zones[0]
			if r.Requests+r.NotUnderstood != c.requests {
				t.Errorf("%d requests and %d lines not understood, want %d", r.Requests, r.NotUnderstood, c.requests)
			}
			if c.refused >= 0 && z.Refused != c.refused {
				t.Errorf("%d requests refused, want %d", z.Refused, c.refused)
			}
			var late int64
			for _, u := range r.Unknown {
				if _, n, ok := strings.Cut(u, "minute late ("); ok {
					_, _ = fmt.Sscan(n, &late)
				}
			}
			if c.late >= 0 && late != c.late {
				t.Errorf("%d requests late, want %d", late, c.late)
			}
			var text bytes.Buffer
			if err := r.WriteText(&text, time.UTC); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(text.String(), "\x1b\x00") {
				t.Errorf("the report has control characters: %q", text.String())
			}
		})
	}
}

// TestReplayOfManyKeys: the memory of a replay is bounded by the store's own bound for keys.
func TestReplayOfManyKeys(t *testing.T) {
	config := fmt.Sprintf(`{"apps": {"http": {"servers": {"main": {"listen": [":8080"], "routes": [{"handle": [{"handler": "rate_limit", "rate_limits": {%s},
		"store": {"backend": "memory", "max_keys": 1024}}]}]}}}}}`, `"paths": {"key": "{http.request.uri.path}", "max_events": 1, "window": "1h"}`)
	n := deep.Steps(8_000, 10_000_000)
	log, to := io.Pipe()
	go func() {
		out := bufio.NewWriter(to)
		for i := range n {
			_, _ = out.WriteString(logLine(noon+float64(i)/1000, "203.0.113.7", fmt.Sprint("/", i)))
		}
		_ = out.Flush()
		_ = to.Close()
	}()
	r, err := engine.Replay([]byte(config), &replay.Options{Logs: []string{"-"}, Input: log, Tries: []replay.Try{{Zone: "paths", Rate: "0/1h"}}})
	if err != nil {
		t.Fatal(err)
	}
	if z := r.Zones[0]; z.Requests != int64(n) || z.Keys != 1024 || len(z.Peaks) != 1 || len(z.PeakKeys) != 1000 || z.WhatIf[0].KeysRefused != 1024 {
		t.Errorf("%d requests with %d keys, of which %d have names, want %d and 1024, and 1000; %+v", z.Requests, z.Keys, len(z.PeakKeys), n, z.WhatIf)
	}
}

// TestReplayMergesLogs: logs come in any order and compressed, and lines that were written up to a minute
// late are put in order. The requests are decided as if they were in one log.
func TestReplayMergesLogs(t *testing.T) {
	dir := t.TempDir()
	var parts [3]bytes.Buffer
	var whole strings.Builder
	for i := range 600 {
		at := noon + float64(i)
		whole.WriteString(logLine(at, "203.0.113.7", fmt.Sprint("/", i)))
	}
	lines := strings.SplitAfter(whole.String(), "\n")
	for i := range 600 {
		parts[i/200].WriteString(lines[(i/50)*50+(i*7+3)%50]) // up to 50 seconds late
	}
	var names []string
	for _, i := range []int{2, 0, 1} {
		name := filepath.Join(dir, fmt.Sprintf("%d.log", i))
		text := parts[i].Bytes()
		if i == 0 {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write(text)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			text = packed.Bytes()
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	const zone = `"clients": {"key": "{http.vars.client_ip}", "max_events": 40, "window": "1m"}`
	order := func(o replay.Options) (all []string) {
		if o.Logs == nil {
			o.Logs, o.Input = []string{"-"}, strings.NewReader(whole.String())
		}
		err := engine.EachDecided(replayConfig(zone), &o, func(uri string, status int) { all = append(all, fmt.Sprint(uri, " ", status)) })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want, got := order(replay.Options{}), order(replay.Options{Logs: names})
	if len(want) != 600 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d requests in another order, or decided otherwise, want %d", len(got), len(want))
	}
}

// TestReplayOfAWaitAtTheEnd: a request that waits beyond the last minute of the log is in the last one.
func TestReplayOfAWaitAtTheEnd(t *testing.T) {
	const zone = `"queue": {"max_events": 1, "window": "2m", "algorithm": "leaky_bucket", "burst": 5, "mode": "queue", "max_wait": "10m"}`
	z := replayed(t, zone, strings.Repeat(logLine(noon, "203.0.113.7", "/"), 3), replay.Options{}).Zones[0]
	if got := fmt.Sprint(z.Requests, z.Series.Admitted); got != "3 [3]" {
		t.Errorf("got %s, want 3 requests in a minute", got)
	}
}

// TestReplayKnowsPeopleByTheWholeLog: what a client sends past a zone tells, too, whether it looks like people. Of a key
// of several clients only what it sends tells.
func TestReplayKnowsPeopleByTheWholeLog(t *testing.T) {
	page := strings.Replace(logLine(noon, "203.0.113.7", "/"), `"headers":{}`, `"headers":{"Cookie":["a=b"]}`, 1)
	logins := logLine(noon+1, "203.0.113.7", "/login") + logLine(noon+2, "203.0.113.7", "/login")
	const zone = `"logins": {"match": [{"path": ["/login"]}], "key": "{http.request.uri.path}", "max_events": 1, "window": "1h"}`
	for log, want := range map[string]string{
		page + logins: "[cookie]",
		logins + page: "[cookie]",
		logins:        "[]",
		page + logins + logLine(noon+3, "203.0.113.8", "/login"): "[]",
	} {
		if got := replayed(t, zone, log, replay.Options{}).Zones[0].Top[0].Signs; fmt.Sprint(got) != want {
			t.Errorf("%s\n%v, want %s", log, got, want)
		}
	}
}

// TestReplaySuggestsNothing: there is no second pass if no limit can be tried.
func TestReplaySuggestsNothing(t *testing.T) {
	const zone = `"clients": {"match": [{"path": ["/none"]}], "key": "{http.vars.client_ip}", "max_events": 1, "window": "1m"}`
	log := logLine(noon, "203.0.113.7", "/") + logLine(noon, "203.0.113.7", "%zz")
	if s := replayed(t, zone, log, replay.Options{Suggest: true}).Zones[0].Suggestion; s.Failure != "no request was charged in this zone" {
		t.Errorf("got %+v", s)
	}
}

// TestReplayTries: a limit that is tried refuses what it would refuse as the limit of the config.
func TestReplayTries(t *testing.T) {
	log := sampleLog(t)
	zones := func(events int) string {
		return fmt.Sprintf(`"clients": {"key": "{http.vars.client_ip}", "max_events": %d, "window": "1m", "algorithm": "token_bucket"},
			"all": {"max_events": 30, "window": "10s"}`, events)
	}
	tried := replayed(t, zones(100), log, replay.Options{Tries: []replay.Try{{Zone: "clients", Rate: "7/1m"}, {Zone: "clients", Rate: "30/1m"}}})
	rows := tried.Zones[1].WhatIf
	if len(rows) != 3 || !rows[2].Configured {
		t.Fatalf("the rows are %+v", rows)
	}
	for i, events := range []int{7, 30, 100} {
		z := replayed(t, zones(events), log, replay.Options{}).Zones[1]
		if rows[i].Refused != z.Refused || rows[i].KeysRefused != z.KeysRefused || z.Refused == 0 && events < 100 {
			t.Errorf("%d/1m: tried, it refuses %d requests of %d clients, and configured %d of %d",
				events, rows[i].Refused, rows[i].KeysRefused, z.Refused, z.KeysRefused)
		}
	}
}

// sampleLog returns the log of the docs.
func sampleLog(t *testing.T) string {
	t.Helper()
	file, err := os.Open("../../../../testdata/replay/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := io.Copy(&b, unpacked); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReplayErrors: errors name the value and what to write.
func TestReplayErrors(t *testing.T) {
	const zones = clients100 + `, "slots": {"key": "x", "max_events": 5, "algorithm": "concurrency"},
		"api": {"key": "x", "plan": {"of": "{http.request.header.Plan}", "default": "free", "plans": {"free": {"max_events": 5, "window": "1m"}}}}`
	for want, o := range map[string]replay.Options{
		`no zone "nobody"; the zones are api, clients, paths, slots`:                                                                        {Tries: []replay.Try{{Zone: "nobody", Rate: "1/1m"}}},
		`limit "60/": rate '60/': window must be <duration>|day|week|month|year from 1ms to 3660d, got ''; write one such as 500/1m`:        {Tries: []replay.Try{{Zone: "clients", Rate: "60/"}}},
		`rate "5/1m": zone "slots": window has no meaning for concurrency, got 1m; a slot is taken for as long as the request runs`:         {Tries: []replay.Try{{Zone: "slots", Rate: "5/1m"}}},
		`zone "api" has only the limits of its plans: try them in a copy of the config`:                                                     {Tries: []replay.Try{{Zone: "api", Rate: "5/1m"}}},
		`limit "-5/1m": rate '-5/1m': events must be <n> | <placeholder> [<n>] from 0 to 1000000000000, got '-5'; write one such as 500/1m`: {Tries: []replay.Try{{Zone: "clients", Rate: "-5/1m"}}},
		`open missing.log: no such file or directory`:                                                                                       {Logs: []string{"missing.log"}},
	} {
		if o.Logs == nil {
			o.Logs, o.Input = []string{"-"}, strings.NewReader("")
		}
		if _, err := engine.Replay(replayConfig(zones), &o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := engine.Replay([]byte(`{"apps": {"http": {}}}`), new(replay.Options)); err == nil || err.Error() != "the config has no rate_limit handlers" {
		t.Errorf("no limits: %v", err)
	}
}
