package caddyratelimit_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestBansWiden: when three addresses of a network are banned, the network is after a minute. That is logged, emitted, counted and shown,
// with how many others it hits, and it ends by an operator or by time. A dry run only tells it.
func TestBansWiden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		events := caddytest.Listen(t, ctx, "rate_limit_network_banned")
		zone := func(widen string) string {
			return `{"key": "{http.request.remote.host}", "max_events": 1, "window": "1h", "overrides": true,
				"ban": {"duration": "1h", "after": 1, "window": "1h", "widen": {"from": 3, ` + widen + `}}}`
		}
		h := caddytest.LoadInto(t, ctx, `{`+caddytest.KeepMemory(t, memorystore.Options{}).Option()+`"rate_limits": {
			"clients": `+zone(`"innocent": 1`)+`, "dry": `+zone(`"innocent": 1, "dry_run": true`)+`}}`)
		caddytest.Run(t, ctx)
		status := func(address string) int {
			code, _ := caddytest.Serve(t, h, address+":1")
			return code
		}
		status("203.0.113.9") // innocent
		for n := range 3 {
			for range 2 {
				status(fmt.Sprint("203.0.113.", n))
			}
		}
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(59 * time.Second)
		if n := logs.FilterMessage("network banned").Len(); n > 0 {
			t.Errorf("%d networks are banned before a minute", n)
		}
		pass(10 * time.Second)
		began := time.Now()
		for _, line := range logs.FilterMessage("network banned").All() {
			data := line.ContextMap()
			if data["network"] != "203.0.113.0/24" || data["banned"] != int64(3) || data["innocent"] != int64(1) || (data["zone"] == "dry") != (data["dry_run"] == true) {
				t.Errorf("the line has %v", data)
			}
		}
		if n := logs.FilterMessage("network banned").Len(); n != 2 || len(events.Events) != 1 {
			t.Fatalf("%d lines and %d events, want 2 and 1: %v", n, len(events.Events), logs.All())
		}
		if data := events.Events[0].Data; data["zone"] != "clients" || data["network"] != "203.0.113.0/24" || data["banned"] != 3 || data["innocent"] != 1 || data["until"].(time.Time).Sub(began) > time.Hour {
			t.Errorf("the event has %v", data)
		}
		if code := status("203.0.113.77"); code != http.StatusTooManyRequests {
			t.Errorf("a neighbour gets %d", code)
		}
		pass(5 * time.Second)
		if values := caddytest.Scrape(t, ctx); values["network_bans_total{zone=clients}"] != 1 || values["network_bans_total{zone=dry}"] != 1 {
			t.Errorf("the metrics are %v", values)
		}
		for path, want := range map[string]string{
			"zones/clients/bans?cursor=override-": "widened: 3 of its keys were banned at once, and 1 others had passed in 10m",
			"doctor":                              "bans have widened to 1 networks: 203.0.113.0/24 (3 keys banned, 1 others passed)",
			"doctor?":                             "widen is a dry run, and would ban now 1 networks: 203.0.113.0/24 (3 keys banned, 1 others passed)",
		} {
			if got := caddytest.Admin(t, http.MethodGet, path, ""); !strings.Contains(got, want) {
				t.Errorf("%s has no %q: %s", path, want, got)
			}
		}
		if got := caddytest.Admin(t, http.MethodGet, "zones/dry/bans?cursor=override-", ""); strings.Contains(got, "203.0.113.0/24") {
			t.Errorf("a dry run has banned: %s", got)
		}
		caddytest.Admin(t, http.MethodDelete, "zones/clients/key/ban?key=203.0.113.0/24", "")
		pass(5 * time.Minute)
		if code := status("203.0.113.78"); code != http.StatusOK {
			t.Errorf("after an operator has ended the ban, a neighbour gets %d", code)
		}
		if got := caddytest.Admin(t, http.MethodGet, "doctor", ""); !strings.Contains(got, "bans have widened to 0 networks") {
			t.Errorf("doctor names a network that is not banned: %s", got)
		}
	})
}

// TestWidenedBanEnds: the ban of a network ends by time, and this is logged.
func TestWidenedBanEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{`+caddytest.KeepMemory(t, memorystore.Options{}).Option()+`"rate_limits": {"clients": {
			"key": "{http.request.remote.host}", "max_events": 1, "window": "1h", "overrides": true, "ban": {"duration": "1h", "after": 1, "window": "1h", "widen": {"from": 2}}}}}`)
		caddytest.Run(t, ctx)
		for n := range 2 {
			for range 2 {
				caddytest.Serve(t, h, fmt.Sprintf("203.0.113.%d:1", n))
			}
		}
		// An operator who ends the ban of a key makes the network no suspect.
		caddytest.Serve(t, h, "198.51.100.1:1")
		caddytest.Serve(t, h, "198.51.100.1:1")
		time.Sleep(time.Second)
		caddytest.Admin(t, http.MethodDelete, "zones/clients/key/ban?key=198.51.100.1", "")
		for range 2 {
			caddytest.Serve(t, h, "198.51.100.2:1")
		}
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if code, _ := caddytest.Serve(t, h, "203.0.113.77:1"); code != http.StatusTooManyRequests {
			t.Errorf("a neighbour gets %d", code)
		}
		if code, _ := caddytest.Serve(t, h, "198.51.100.3:1"); code != http.StatusOK {
			t.Errorf("an address of another network gets %d", code)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		ended := 0
		for _, line := range logs.FilterMessage("ban ended").All() {
			if data := line.ContextMap(); data["network"] == "203.0.113.0/24" {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("%d lines about the end: %v", ended, logs.All())
		}
		if code, _ := caddytest.Serve(t, h, "203.0.113.78:1"); code != http.StatusOK {
			t.Errorf("after the ban, a neighbour gets %d", code)
		}
	})
}
