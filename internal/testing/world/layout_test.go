package world

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLayoutsMeetTheirTroubles: worlds are not only calm. In each layout servers take over, and instances meet all that
// servers answer that have not got a slot, or are not the master any more.
func TestLayoutsMeetTheirTroubles(t *testing.T) {
	met := make(map[string]int)
	want := []string{
		"Sentinels: another master", "Sentinels: READONLY",
		"Cluster: another master", "Cluster: MOVED", "Cluster: ASK",
	}
	missing := func() (all []string) {
		for _, what := range want {
			if met[what] == 0 {
				all = append(all, what)
			}
		}
		return all
	}
	seeds := []uint64{216, 230, 226, 141} // which meet all if goroutines run in their usual order
	for seed := range uint64(3000) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		if len(missing()) == 0 {
			break
		}
		p := Draw(seed)
		if p.Layout == Single || !p.hasKind(Promote, Move) {
			continue
		}
		h := Run(t, p)
		if violations := Check(h); len(violations) > 0 {
			failed(t, p, violations)
		}
		about := string(p.Layout) + ": "
		if len(h.forks) > 0 {
			met[about+"another master"]++
		}
		for _, c := range h.Commands {
			for _, word := range []string{"MOVED", "ASK", "TRYAGAIN", "READONLY", "CLUSTERDOWN"} {
				if strings.HasPrefix(string(c.Reply), "-"+word) {
					met[about+word]++
				}
			}
		}
	}
	t.Log(met)
	if all := missing(); len(all) > 0 {
		t.Errorf("no world has met %q", all)
	}
}

// TestTwoKeysOfASlotOnItsWay: requests that share a call have keys at two nodes, and each is decided by itself.
func TestTwoKeysOfASlotOnItsWay(t *testing.T) {
	zone := Zone{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 100, Window: time.Hour}}
	p := &Plan{Seed: 1, Even: true, Layout: Cluster, Instances: 1, Zones: []Zone{zone, zone}}
	p.Events = append(p.Events, Event{Kind: Take, Cost: 1}, Event{At: 100 * time.Millisecond, Kind: Move, For: time.Second})
	for i := range 8 {
		p.Events = append(p.Events, Event{At: 250*time.Millisecond + time.Duration(i), Kind: Take, Zone: i % 2, Cost: 1})
	}
	h := Run(t, p)
	for _, violation := range Check(h) {
		t.Error(violation)
	}
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
	for _, l := range h.Left {
		if want := map[string]int64{fmt.Sprint(0, 0): 95, fmt.Sprint(1, 0): 96}[fmt.Sprint(l.Zone, l.Key)]; want != 0 && l.Remaining != want {
			t.Errorf("%d of zone %d are left, not %d", l.Remaining, l.Zone, want)
		}
	}
}
