package world

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// instance is a Caddy.
type instance struct {
	number int
	store  *seam
	watch  *watch
	whole  atomic.Pointer[whole] // nil if there is only a store
	limits map[int]int64         // of zones, by the last config; the others have those of the plan
	over   atomic.Bool
}

// killed is the failure of calls whose instance is no more.
const killed = "killed"

// dead reports whether the instance is no more, so that nobody gets its answers.
func (in *instance) dead() bool { return in.over.Load() }

// open starts an instance.
func (w *world) open(t *testing.T, i int) *instance {
	rate := 1 + (float64(w.net.draw("rate", i)%2001)-1000)/1e6 // up to 0.1 % too fast or too slow
	in := &instance{number: i, watch: newWatch(w.net, rate), limits: make(map[int]int64)}
	o := w.plan.Layout.options()
	o.Timeout, o.PoolSize, o.Instance = storeTimeout, 20, fmt.Sprintf("i%d", i)
	o.Dial = func(ctx context.Context, _, address string) (net.Conn, error) { return w.dial(ctx, in, address) }
	s, err := redisstore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Microsecond) // until what it does in the background has begun, before anybody comes
	in.store = &seam{Store: s, w: w, instance: in, leases: make(map[string]string)}
	if w.plan.Whole {
		in.whole.Store(w.load(in))
	}
	return in
}

// close stops an instance.
func (in *instance) close(t *testing.T) {
	if g := in.whole.Load(); g != nil {
		g.release(t) // which closes the store
	} else if err := in.store.Close(); err != nil {
		t.Error(err)
	}
}
