package linear

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Check fails the test if the answers to a key are not those of one store, and shows that history.
func (h *History) Check(t testing.TB) {
	t.Helper()
	for _, k := range h.wrong(t) {
		_, all := h.operations(k)
		t.Errorf("%s: no order of %d operations explains the answers:", k.name, len(all))
		for _, o := range all {
			t.Logf("%d to %d, client %d: %s", o.Call, o.Return, o.ClientId, describe(o.Input.(*input), o.Output.(*output)))
		}
	}
}

// wrong returns the keys whose answers have no order.
func (h *History) wrong(t testing.TB) (wrong []*key) {
	var mu sync.Mutex
	var checked atomic.Int64
	work := make(chan *key)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for k := range work {
				start, all := h.operations(k)
				for i := range all {
					if !all[i].Output.(*output).lost && all[i].Input.(*input).kind != setTime {
						checked.Add(1)
					}
				}
				if !k.model(h.ownTime).hasOrder(t, k.name, start, all) {
					mu.Lock()
					wrong = append(wrong, k)
					mu.Unlock()
				}
			}
		})
	}
	for _, k := range h.keys {
		work <- k
	}
	close(work)
	workers.Wait()
	t.Logf("%d answers checked", checked.Load())
	return wrong
}

func (k *key) model(ownTime bool) *model {
	rules := make([]*store.Rule, len(k.zones))
	for i := range k.zones {
		rules[i] = k.zones[i].rule
	}
	return &model{rules, ownTime}
}

// hasOrder reports whether a history has an order in which the model gives all of its answers. The test
// fails if the search does not end: histories must be so small that it does.
func (m *model) hasOrder(t testing.TB, name string, start int64, history []porcupine.Operation) bool {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(m.porcupine(start), history, patient.Patience)
	if result == porcupine.Unknown {
		t.Errorf("%s: no decision on %d operations in %v", name, len(history), patient.Patience)
	}
	return result != porcupine.Illegal
}
