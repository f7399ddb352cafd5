package world

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestWideningIsChecked: the bans of two addresses widen to their network, which ends. What would be wrong with that is found.
func TestWideningIsChecked(t *testing.T) {
	zone := Zone{
		Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Hour}, Overrides: true, BanAfter: 1, BanFor: 9 * time.Second,
		Widens: Widens{WidenFrom: 2},
	}
	p := &Plan{Seed: 1, Even: true, Instances: 2, Whole: true, Addresses: 4, Zones: []Zone{zone}}
	for i := range 4 {
		p.Events = append(p.Events, Event{At: time.Duration(i) * 10 * time.Millisecond, Kind: Request, Instance: i % 2, Key: i / 2, Cost: 1})
	}
	p.Events = append(p.Events, Event{At: 12 * time.Second, Kind: Request, Instance: 1, Key: 2, Cost: 1}, Event{At: 20 * time.Second, Kind: Request, Key: 2, Cost: 1})
	run := func() *History {
		h := Run(t, p)
		for _, violation := range Check(h) {
			t.Error(violation)
		}
		return h
	}
	h := run()
	if late := h.Verdicts[4:]; len(late) != 2 || late[0].Passes || len(late[0].Unasked) != 1 || !late[0].Unasked[0].Banned || !late[1].Passes {
		t.Fatalf("another address: %+v", late)
	}
	expect := func(h *History, want string) {
		t.Helper()
		if !slices.ContainsFunc(Check(h), func(v string) bool { return strings.Contains(v, want) }) {
			t.Errorf("nothing says that %s: %v", want, Check(h))
		}
	}
	for i := range h.Answers {
		h.Answers[i].Decision.BanBegins = false
	}
	expect(h, "0 keys are banned, told are 2")
	h = run()
	h.Steps = slices.DeleteFunc(h.Steps, func(s WidenStep) bool { return s.What == widened })
	expect(h, "though 2 keys of it are")
	h = run()
	again := h.Steps[slices.IndexFunc(h.Steps, func(s WidenStep) bool { return s.What == judged && s.Verdict == store.Widened })]
	h.Steps = append(h.Steps, again)
	expect(h, "and it was judged at")
	h = run()
	h.Plan = h.Plan.clone()
	h.Plan.Events = append(h.Plan.Events, Event{Kind: Network, Sort: exempt, Cost: 1})
	h.Deeds = append(h.Deeds, Deed{Event: len(h.Plan.Events) - 1, Kind: Network, Sort: exempt, Began: h.began, Ended: h.began + time.Millisecond})
	expect(h, "for which exempt 0 since")
	h = run()
	h.Plan = h.Plan.clone()
	h.Plan.Zones[0].WidenDryRun = true
	expect(h, "in a dry run")
	p.Zones[0].WidenDryRun = true
	if h = run(); !h.Verdicts[4].Passes {
		t.Errorf("another address, in a dry run: %+v", h.Verdicts[4])
	}
	h.Steps = slices.DeleteFunc(h.Steps, func(s WidenStep) bool { return s.What == judged })
	expect(h, "though 2 keys of it are")
}
