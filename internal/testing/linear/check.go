package linear

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Check fails the test if the answers to a key are not those of one store, and names the file with
// the picture of that history.
func (h *History) Check(t testing.TB) {
	t.Helper()
	for _, k := range h.wrong(t) {
		start, all := h.operations(k)
		Explain(t, k.name, k.model(h.ownTime).porcupine(start), all)
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
				if !Decide(t, k.name, k.model(h.ownTime).porcupine(start), all) {
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

// Decide reports whether a history has an order in which the model gives all of its answers. The test
// fails if the search does not end: histories must be so small that it does.
func Decide(t testing.TB, name string, m porcupine.Model, history []porcupine.Operation) bool {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(m, history, patient.Patience)
	if result == porcupine.Unknown {
		t.Errorf("%s: no decision on %d operations in %v", name, len(history), patient.Patience)
	}
	return result != porcupine.Illegal
}

// Explain fails the test because of a history without an order, and draws it.
func Explain(t testing.TB, name string, m porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	path, err := draw(t, name, m, history)
	if err != nil {
		t.Errorf("%s: no order of %d operations explains the answers, and there is no picture: %v", name, len(history), err)
		return
	}
	t.Errorf("%s: no order of %d operations explains the answers; see %s", name, len(history), path)
}

// draw writes a page that shows a history, and how far the checker came.
func draw(t testing.TB, name string, m porcupine.Model, history []porcupine.Operation) (path string, err error) {
	dir := os.Getenv("ARTIFACTS")
	if dir == "" {
		dir = os.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	_, info := porcupine.CheckOperationsVerbose(m, history, patient.Patience)
	file, err := os.CreateTemp(dir, strings.ReplaceAll(t.Name(), "/", "-")+"-"+name+"-*.html")
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := porcupine.Visualize(m, info, file); err != nil {
		return "", err
	}
	return filepath.Abs(file.Name())
}
