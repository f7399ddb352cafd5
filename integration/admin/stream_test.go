//go:build deep

package admin_test

import (
	"bufio"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestAdminStream: a stream has all decisions, or those of a zone, a key or an outcome, with keys of
// any bytes. A flood is sampled, and skipped decisions are counted. A reload ends the stream at once.
func TestAdminStream(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.ByQuery(harness.Memory))
	client := harness.NewClient(t, "")
	all, refused := bufio.NewScanner(s.Stream("")), bufio.NewScanner(s.Stream("?zone=odd%20/%20zone&key=a&outcome=refused"))
	for _, key := range harness.AwkwardKeys {
		s.Get(client, harness.WithKey(key))
		if d, ok := harness.NextDecision(t, all); !ok || !d.Is(key) || d.Outcome != "allowed" || d.Decision.Used != 1 || d.Decision.Remaining != 1 || d.Path != "/" {
			t.Fatalf("key %q: %+v", key, d)
		}
	}
	s.Admitted(client, 3, "/?k=a")
	if d, ok := harness.NextDecision(t, refused); !ok || !d.Is("a") || d.Outcome != "limited" || d.Decision.Remaining != 0 {
		t.Errorf("%+v", d)
	}
	few := bufio.NewScanner(s.Stream("?rate=1"))
	var sent atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for flooding := harness.NewClient(t, ""); ; sent.Add(1) {
			if _, err := harness.Send(flooding, s.URL("/?k=flood")); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	shown, skipped := uint64(0), uint64(0)
	for ; skipped < 100; shown++ {
		d, ok := harness.NextDecision(t, few)
		if !ok {
			t.Fatal("the stream ended")
		}
		skipped += d.Skipped
	}
	close(stop)
	<-stopped
	if n := sent.Load() + 1; shown+skipped > n || shown > n/2 {
		t.Errorf("at 1 per second %d of %d are sent, and %d counted as skipped", shown, n, skipped)
	}
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		s.MustLoad(strings.Replace(harness.ByQuery(harness.Memory), "respond ok", "respond new", 1))
	}()
	for ok := true; ok; {
		_, ok = harness.NextDecision(t, all)
	}
	<-reloaded
}
