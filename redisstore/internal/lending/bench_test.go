package lending_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/lending"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// instant is a layer that decides at once, so that what remains is the work of the layer above. It reads the key, as
// all layers do.
type instant struct{ layer.Layer }

func (instant) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if strings.IndexByte(checks[0].Key, '.') < 0 {
		return errors.New("no address")
	}
	decisions[0] = algorithms.Decision{Allowed: true, Quota: 10_000, Remaining: 9_999, At: 1}
	return nil
}

// BenchmarkCold measures what lending adds to a request of a key that comes too rarely to be lent: without lend, with
// it, and with it while another key is lent. A benchmark sends much more than clients do, so its keys are many and the
// time in which one must come often is short.
func BenchmarkCold(b *testing.B) {
	limit := algorithms.Limit{Events: 10_000, Window: time.Second}
	plain, err := store.NewRule("z", algorithms.TokenBucket{}, limit, 0)
	lends, failed := store.NewLendingRule("z", algorithms.TokenBucket{}, limit, 0, lend.MinPeriod)
	if err = errors.Join(err, failed); err != nil {
		b.Fatal(err)
	}
	keys := make([]string, 1_000_000)
	for i := range keys {
		keys[i] = "203.0.113." + strconv.Itoa(i)
	}
	for _, c := range []struct {
		name string
		rule *store.Rule
		lent bool
	}{{"without", plain, false}, {"lend", lends, false}, {"lend, another key is lent", lends, true}} {
		b.Run(c.name, func(b *testing.B) {
			l := lending.New(instant{}, &lending.Config{Loans: loans.New(), PerCall: 32, Timeout: time.Second})
			if c.lent {
				l.Loans.Make(lends, "hot", 1, l.Loans.Now())
			}
			b.RunParallel(func(pb *testing.PB) {
				checks, decisions := []store.Check{{Rule: c.rule, Cost: 1}}, make([]algorithms.Decision, 1)
				random := rand.New(rand.NewPCG(1, rand.Uint64()))
				for pb.Next() {
					checks[0].Key = keys[random.IntN(len(keys))]
					if err := l.Take(context.Background(), checks, decisions); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
