//go:build deep

package protocol

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// BenchmarkLendScript measures the time that Redis takes for an ask of a borrower, of which there are
// some of each key, in calls that share it with others.
func BenchmarkLendScript(b *testing.B) {
	server := redistest.Start(b)
	client := server.Admin()
	script := NewScript(nil).Lend
	if err := client.ScriptLoad(context.Background(), script.Text).Err(); err != nil {
		b.Fatal(err)
	}
	number := int64(0)
	for _, borrowers := range []int{1, 16, 64} {
		for _, shared := range []int{1, -1, 16, -16} {
			rules := shared < 0 // a key may have an override and a ban
			shared = max(shared, -shared)
			b.Run(fmt.Sprintf("borrowers=%d/shared=%d/rules=%v", borrowers, shared, rules), func(b *testing.B) {
				rule := storetest.Rule(b, "z", "token_bucket", algorithms.Limit{Events: 1_000_000_000, Window: 100 * 24 * time.Hour})
				run := func() {
					number++
					var text []byte
					var keys []any
					var groups [][]LendOp
					for i := range shared {
						g := []LendOp{{
							Rule: rule, Prepared: rule.At(0), Key: fmt.Sprint("k", borrowers, i),
							Ask: lend.Ask{Borrower: uint64(number%int64(borrowers)) + 1<<60, Number: number, Spent: number, Want: 100, Lease: 60_000_000, Cost: 1},
						}}
						if rules {
							g[0].KeyRules = &KeyRules{Override: "override", BanState: "ban", Ban: &store.Ban{For: time.Hour, After: 10, Within: time.Hour}}
						}
						groups = append(groups, g)
						text, keys = AppendLend(text, keys, g)
					}
					reply, err := client.Do(context.Background(), append([]any{"evalsha", script.Digest, len(keys)}, append(keys, text)...)...).Text()
					if err != nil {
						b.Fatal(err)
					}
					read := NewLendReply(reply, false)
					for _, g := range groups {
						if a, err := read.Group(g); err != nil || a[0].Err != nil || a[0].Held == 0 {
							b.Fatalf("%+v, %v", a, err)
						}
					}
				}
				for range 2 * borrowers {
					run()
				}
				used := func() (micros float64) {
					info := client.Info(context.Background(), "commandstats").Val()
					_, rest, _ := strings.Cut(info, "cmdstat_evalsha:")
					var calls float64
					_, _ = fmt.Sscanf(rest, "calls=%f,usec=%f", &calls, &micros)
					return micros
				}
				before := used()
				b.ResetTimer()
				for range b.N {
					run()
				}
				b.ReportMetric((used()-before)/float64(b.N*shared), "µs/ask")
			})
		}
	}
}
