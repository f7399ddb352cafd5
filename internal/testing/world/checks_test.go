package world

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// made is a history that somebody has made up. Times are in milliseconds.
type made struct{ History }

func makeUp(z Zone, instances int, events ...Event) *made {
	m := &made{History{Length: time.Hour, Plan: &Plan{Instances: instances, Zones: []Zone{z}, Events: events}}}
	m.clocks = []reading{{}}
	return m
}

// says has an instance answer a client.
func (m *made) says(at time.Duration, instance int, d algorithms.Decision) *made {
	at *= time.Millisecond
	d.At, d.Quota = epoch+at.Microseconds(), 2
	m.Answers = append(m.Answers, Answer{Event: len(m.Answers), Instance: instance, Cost: 1, Began: at, Ended: at, Decision: d, Charged: d.Allowed})
	return m
}

// sets has an operator make the key what the event says, at a time.
func (m *made) sets(at time.Duration, event int) *made {
	at *= time.Millisecond
	m.Deeds = append(m.Deeds, Deed{Number: event, Event: m.Plan.Events[event], Began: at, Ended: at})
	return m
}

// TestChecksSeeThroughTroubles: messages that are lost, and what other instances may hold, excuse only what they explain.
func TestChecksSeeThroughTroubles(t *testing.T) {
	passes, refused := algorithms.Decision{Allowed: true}, algorithms.Decision{RetryAfter: time.Second}
	rate := Zone{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 2, Window: time.Hour}, Overrides: true}
	lends, bans, slots := rate, rate, Zone{Algorithm: "concurrency", Limit: algorithms.Limit{Events: 2, Lease: time.Minute}}
	lends.Lend, bans.BanAfter, bans.BanFor = time.Second, 2, time.Minute
	lost, ban := Event{Kind: LoseReplies, For: time.Second}, Event{Kind: Override, Sort: banned}
	late := makeUp(rate, 2, Event{Kind: Override, Sort: exempt}, ban).sets(400, 0).sets(500, 1)
	late.Deeds[0].Failure = store.FailureTimeout
	given := makeUp(slots, 1).says(0, 0, passes)
	given.Answers[0].Adjusted = 100 * time.Millisecond
	for name, c := range map[string]struct {
		history *made
		want    string // a part of what is found; empty: nothing is
	}{
		"a ban that is set, messages lost":        {makeUp(rate, 2, ban, lost).sets(500, 0).says(600, 1, passes), "client 0 was not banned"},
		"a ban that is set after another try":     {late.says(600, 1, algorithms.Decision{Allowed: true, Exempt: true}), ""},
		"a ban that is earned, messages lost":     {makeUp(bans, 2, lost).says(500, 0, refused).says(600, 1, refused), "no ban begins"},
		"held, a ban that is set while it may be": {makeUp(lends, 2, ban).sets(500, 0).says(600, 1, passes), ""},
		"held no more, a ban that was set":        {makeUp(lends, 2, ban).sets(500, 0).says(1600, 1, passes), "client 0 was not banned"},
		"a slot that was given back is free":      {given.says(1000, 0, refused), "without a cause"},
	} {
		k := c.history.keyOf(0, 0)
		k.holds()
		k.bans()
		k.withoutCause()
		if got := fmt.Sprint(k.Wrong); len(k.Wrong) > 0 != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", name, got, c.want)
		}
	}
}
