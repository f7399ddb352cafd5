package topk

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpread: all requests are counted, whether their keys have a place or not, and keys that come
// once are told from those that come again.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			key      func(i int) string
			keys     [2]int // lowest and highest
			repeated [2]int
		}{
			"one key":    {func(int) string { return "x" }, [2]int{1, 1}, [2]int{1, 1}},
			"ten keys":   {func(i int) string { return strconv.Itoa(i % 10) }, [2]int{10, 10}, [2]int{10, 10}},
			"new keys":   {strconv.Itoa, [2]int{400, 1024}, [2]int{0, 0}},
			"both spans": {func(i int) string { return strconv.Itoa(i % 5000) }, [2]int{400, 1024}, [2]int{400, 1024}},
		} {
			r := New(time.Minute)
			for i := range 10_000 {
				if i == 5000 {
					time.Sleep(time.Minute + 1)
				}
				r.Add(c.key(i), "", Requests, 0)
			}
			s := r.Spread()
			if s.Requests != 10_000 || s.Keys < c.keys[0] || s.Keys > c.keys[1] || s.Repeated < c.repeated[0] || s.Repeated > c.repeated[1] {
				t.Errorf("%s: %+v", name, s)
			}
		}
		time.Sleep(3 * time.Minute)
	})
}
