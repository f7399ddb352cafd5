package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// TestGoldenWidths: what the tables show at several widths. Only keys, limits and stores are cut, keys in
// their middle.
func TestGoldenWidths(t *testing.T) {
	yes, keys := true, int64(1_204_117)
	store := adminapi.Store{
		Name: "redis tls://redis.internal.example.com:6380/0", Answers: &yes, Breaker: "closed", Instances: 3, Keys: &keys,
		Latency: &adminapi.Latency{Count: 9, P50: 0.001, P99: 0.05}, Zones: []string{"clients", "logins", "api-by-customer"},
	}
	const key = "2001:db8:85a3:8d3:1319:8a2e:370:7348|/api/v1/orders/export"
	var b strings.Builder
	for _, width := range []int{60, 80, 120, 200} {
		c := &instance{screen: &screen{out: &b, width: width}}
		w := &watcher{instance: c}
		decision, err := json.Marshal(&adminapi.Decision{
			Time: time.Date(2026, 11, 20, 9, 0, 0, 0, time.Local), Zone: "api-by-customer", KeyText: adminapi.NewKeyText(key, len(key)), Outcome: "limited",
			Method: "GET", Path: "/api/v1/orders/export", Decision: &adminapi.QuotaStatus{Quota: 5000, RetryAfter: 12.3},
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d COLUMNS\n", width)
		c.table([][]string{{"STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", "ZONES"}, storeCells(&store)})
		c.table([][]string{{"ZONE", "STATE", "USED", "LEFT", "MORE IN", "KEY"}, {"api-by-customer", "limited", "5000 of 5000", "0", "12.3s", key}})
		if err := w.print(string(decision)); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	golden.Open(t, "testdata/tables.txtar", "widths").Check(t, b.String())
}

// TestGoldenFleetWidths: what is said of the instances of a fleet at several widths.
func TestGoldenFleetWidths(t *testing.T) {
	view := adminapi.FleetAnswer{Instances: []adminapi.Instance{
		{Name: "limiter-7d9c6b5f4d-x2x7q.example.com (process 3188)", State: adminapi.StateHere},
		{Name: "limiter-7d9c6b5f4d-k8w2z.example.com (process 17)", State: adminapi.StateReports, Differs: []string{"logins"}},
		{Name: "old.example.com (process 3)", State: adminapi.StateMute},
		{Name: "limiter-7d9c6b5f4d-w7f4t.example.com (process 204)", State: adminapi.StateSilent, Age: 31.5},
	}, Notes: []string{"what other instances report by store redis localhost:6379 is not known: no answer"}}
	var b strings.Builder
	for _, width := range []int{60, 80, 200} {
		var out strings.Builder
		(&instance{screen: &screen{out: &out, width: width}, view: &view}).printView()
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns in a terminal of %d: %s", n, width, line)
			}
		}
		fmt.Fprintf(&b, "%d COLUMNS\n%s\n", width, out.String())
	}
	golden.Open(t, "testdata/tables.txtar", "fleets").Check(t, b.String())
}
