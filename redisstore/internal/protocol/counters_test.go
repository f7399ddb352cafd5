package protocol

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// counterChecks are checks of a counter-only batch: of all Counters, and of limits that recover
// in anything from no time to a year.
func counterChecks(t *testing.T) (server *redistest.Server, script *Script, _ []store.Check) {
	server, script = redistest.Shared(t), NewScript(nil)
	var checks []store.Check
	for _, name := range algorithms.Names() {
		a, _ := algorithms.Get(name)
		if _, ok := a.(algorithms.Counter); !ok {
			continue
		}
		for _, limit := range []algorithms.Limit{
			{Events: 1_000_000, Window: time.Second},
			{Events: 5, Window: time.Millisecond},
			{Events: 3, Window: time.Minute},
			{Events: 10, Window: time.Hour},
			{Events: 1, Window: algorithms.MaxWindow},
		} {
			rule := storetest.Rule(t, fmt.Sprint(t.Name(), name, limit.Events), name, limit)
			checks = append(checks, store.Check{Rule: rule, Key: fmt.Sprint("client", len(checks)%3), Cost: 1})
		}
	}
	return server, script, checks
}

// together makes one call of the checks, each for a request of its own.
func together(t *testing.T, server *redistest.Server, script *Script, checks []store.Check) ([]*Request, error) {
	t.Helper()
	b := NewBatch()
	requests := make([]*Request, len(checks))
	for i := range checks {
		requests[i] = request(checks[i:i+1], 0)
		b.Add(requests[i])
	}
	err := send(server.Admin(), script, b)
	if !b.countersOnly {
		t.Fatal("the batch is not counter-only")
	}
	return requests, err
}

// TestCountersLies: an impossible reply is an error, never a decision.
func TestCountersLies(t *testing.T) {
	t.Parallel()
	server, _, checks := counterChecks(t)
	checks = checks[:2]
	now := int64(storetest.Start)
	reply := func(now int64, refused, more int) string {
		return strings.Repeat("\x00", 2*stateSize+more) + fmt.Sprintf(" %d %d %d", refused, now/1_000_000, now%1_000_000)
	}
	damaged := func(key string) string { return strings.Repeat("\x00", 2*stateSize) + key + " 0 0 0" }
	for what, text := range map[string]string{
		"nothing":                  "",
		"half a time":              "1234",
		"a state too few":          reply(now, 0, -stateSize),
		"a byte too few":           reply(now, 0, -1),
		"a byte too many":          reply(now, 0, 1),
		"damage to no key":         reply(now, 0, 2),
		"damage to a third of two": damaged("\x00\x03"),
		"room for more":            reply(now, -1, 0),
		"room for fewer":           reply(now, 1, 0),
		"before 1970":              reply(-now, 0, 0),
		"no time":                  strings.Repeat("\x00", 2*stateSize) + " 0",
		"no number":                strings.Repeat("\x00", 2*stateSize) + " 0 x 0",
		"the end of time":          reply(1<<62, 0, 0),
	} {
		script := TextScript(fmt.Sprintf("return '%s'", escaped(text)))
		if _, err := together(t, server, script, checks); err == nil {
			t.Errorf("%s is believed", what)
		}
	}
	script := TextScript(fmt.Sprintf("return '%s'", escaped(damaged("\x00\x02"))))
	asked, err := together(t, server, script, checks)
	if err != nil || asked[0].Damaged != nil || asked[1].Damaged != checks[1].Rule {
		t.Errorf("%v, damaged: %v and %v", err, asked[0].Damaged, asked[1].Damaged)
	}
}

// escaped returns a text in the form that Lua reads between quotes.
func escaped(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "\\%03d", text[i])
	}
	return b.String()
}

// TestCountersForgotten: a Redis that has forgotten the script gets it, and then receives the
// same call, even if the call had to be sorted.
func TestCountersForgotten(t *testing.T) {
	t.Parallel()
	server, script, all := counterChecks(t)
	var checks []store.Check
	for _, c := range all {
		if c.Rule.Limit().Window == time.Hour {
			checks = append(checks, c, store.Check{Rule: c.Rule, Key: "other", Cost: 2})
		}
	}
	for i := range int64(3) {
		if err := server.Admin().ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		asked, err := together(t, server, script, append([]store.Check{checks[len(checks)-1]}, checks[:len(checks)-1]...))
		if err != nil {
			t.Fatal(err)
		}
		for j, r := range asked {
			cost := int64(1 + (j+1)%2)
			if d := r.Decisions[0]; !d.Allowed || d.Remaining != 10-(i+1)*cost {
				t.Errorf("call %d, request %d: %+v", i, j, d)
			}
		}
	}
}
