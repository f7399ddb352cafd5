package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

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
		f := &fleet{screen: &screen{out: &b, width: width}, caddys: []*endpoint{{}}}
		l := newDecisionLayout(f, !f.isOne(), []adminapi.Zone{{Name: "api-by-customer"}}, []adminapi.Top{{Keys: []adminapi.KeyCount{{KeyText: adminapi.NewKeyText(key, len(key))}}}})
		decision := &adminapi.Decision{
			Time: time.Date(2026, 11, 20, 9, 0, 0, 0, time.Local), Zone: "api-by-customer", KeyText: adminapi.NewKeyText(key, len(key)), Outcome: "limited",
			Method: "GET", Path: "/api/v1/orders/export", Decision: &adminapi.QuotaStatus{Quota: 5000, RetryAfter: 12.3},
		}
		fmt.Fprintf(&b, "%d COLUMNS\n", width)
		for _, err := range []error{
			f.table(only(map[string]bool{lentColumn: false}, [][]string{{"STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", lentColumn, "ZONES"}, storeCells(&store)})),
			f.table([][]string{{"ZONE", "STATE", "USED", "LEFT", "MORE IN", "KEY"}, {"api-by-customer", "limited", "5000 of 5000", "0", "12.3s", key}}),
			l.print(&b, l.header()), l.print(&b, l.cells("", decision)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		b.WriteByte('\n')
	}
	golden.Open(t, "testdata/tables.txtar", "widths").Check(t, b.String())
}
