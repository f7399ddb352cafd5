package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

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
	server := redistest.Shared(t)
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 10, Window: time.Hour})
	checks := []store.Check{{Rule: rule, Key: "a", Cost: 1}, {Rule: rule, Key: "b", Cost: 1}}
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
