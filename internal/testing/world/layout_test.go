package world

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestTwoKeysOfASlotOnItsWay: requests that share a call have keys at two nodes, and each is decided by itself.
func TestTwoKeysOfASlotOnItsWay(t *testing.T) {
	zone := Zone{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 100, Window: time.Hour}}
	p := &Plan{Seed: 1, Even: true, Layout: Cluster, Instances: 1, Zones: []Zone{zone, zone}}
	p.Events = append(p.Events, Event{Kind: Take, Cost: 1}, Event{At: 100 * time.Millisecond, Kind: Move, For: time.Second})
	for i := range 8 {
		p.Events = append(p.Events, Event{At: 250*time.Millisecond + time.Duration(i), Kind: Take, Zone: i % 2, Cost: 1})
	}
	h := holds(t, p)
	replies := make(map[string]int)
	for _, c := range h.Commands {
		word, _, _ := strings.Cut(string(c.Reply), " ")
		replies[word]++
	}
	for _, word := range []string{"-TRYAGAIN", "-ASK"} {
		if replies[word] == 0 {
			t.Errorf("no call was answered %s: %v", word, replies)
		}
	}
	for _, a := range h.Answers {
		if a.Failure != "" {
			t.Errorf("client %d gets no decision: %s", a.Event, a.Err)
		}
	}
	for zone, want := range []int64{95, 96} {
		if left := h.Left[place{zone, 0}].Remaining; left != want {
			t.Errorf("%d of zone %d are left, not %d", left, zone, want)
		}
	}
}
