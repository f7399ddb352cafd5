package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }

// must ends a test that has an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send makes a call of a batch, and makes it again if Redis does not know the script, or
// carefully if it cannot write.
func send(client *redis.Client, script *Script, b *Batch) error {
	run := func(call func(*Script) []any) (string, error) {
		return client.Do(context.Background(), call(script)...).Text()
	}
	reply, err := run(b.Call)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = run(b.CallText)
	}
	if err != nil && ReadError(err.Error()).RefusesWrite() {
		b.TakeCare(Unwritten(err.Error()))
		reply, err = run(b.Call)
	}
	if err != nil {
		return err
	}
	return b.Read(reply)
}

// request asks for some checks.
func request(checks []store.Check, now int64) *Request {
	r := &Request{AllAlone: !slices.ContainsFunc(checks, func(c store.Check) bool { return !c.Independent })}
	for _, independent := range []bool{false, true} {
		for i := range checks {
			if c := &checks[i]; c.Independent == independent {
				op := Op{Rule: c.Rule, Prepared: c.Rule.At(now), Key: stateKey(c), Cost: c.Cost, Alone: independent, Index: i}
				if c.KeyRules != nil {
					op.KeyRules = &KeyRules{KeyRules: c.KeyRules}
					if c.KeyRules.Overrides {
						op.KeyRules.Override = "o" + op.Key
					}
					if c.KeyRules.Ban != nil {
						op.KeyRules.BanState = "b" + op.Key
					}
				}
				r.Ops = append(r.Ops, op)
			}
			if independent {
				r.EndGroup()
			}
		}
		r.EndGroup()
	}
	r.Expect(len(checks))
	return r
}

// stateKey names the state of a check.
func stateKey(c *store.Check) string { return "rl:{" + c.Key + "}:" + c.Rule.ID() }

// TestBatches: the requests of one call are decided as if they had come one after the other, also
// if they ask the same and are decided in one step, if keys meet in other groups, and if checks
// are decided by themselves. Half of the batches ask only Counters, and half of these have no rules of keys.
func TestBatches(t *testing.T) {
	t.Parallel()
	const clock = "batches:clock"
	server := redistest.Shared(t)
	script := NewScript(redistest.KeyClock(clock))
	now := int64(storetest.Start)
	memory, err := memorystore.New(memorystore.Options{Now: func() int64 { return now }})
	must(t, err)
	t.Cleanup(func() { _ = memory.Close() })

	random := rand.New(rand.NewPCG(deep.Seed(1), 0))
	rules := sharedRules(t)
	keyRules := drawnKeyRules(t, server.Admin(), memory, rules)
	merged, counterOnly, shared, ruled := 0, 0, 0, 0
	rounds := deep.Steps(600, 10_000)
	for round := range rounds {
		now += random.Int64N(400_000)
		must(t, server.Admin().Set(context.Background(), clock, now, 0).Err())
		b := NewBatch()
		asked := make(map[*Request][]store.Check)
		for range 1 + random.IntN(40) {
			checks := drawChecks(random, rules, round+random.IntN(2))
			if round%2 > 0 {
				checks = drawCounters(random, rules)
			}
			if first := round / 4 % len(rules); round%4 == 1 { // a single check is decided with others even if its key may have rules
				checks = drawCounters(random, slices.Concat(rules[first:], rules[:first]))[:1]
			}
			for i := range checks {
				if round%4 < 3 {
					checks[i].KeyRules = keyRules[checks[i].Rule]
				}
			}
			r := request(checks, now)
			asked[r] = checks
			b.Add(r)
		}
		if err := send(server.Admin(), script, b); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if b.countersOnly {
			counterOnly++
			shared += len(asked) - len(b.groups)
		}
		for i := range b.groups {
			g := &b.groups[i]
			merged += len(g.waiters) - 1
			if g.ops[0].KeyRules != nil {
				ruled += len(g.waiters) - 1
			}
			for _, w := range g.waiters {
				compare(t, memory, w, asked[w.Request], len(g.ops))
			}
		}
	}
	if merged < rounds/3 || counterOnly < rounds/6 || shared < rounds/3 || ruled < rounds/3 {
		t.Errorf("only %d requests were decided with others, %d of them in %d counter-only batches, %d with rules of keys", merged, shared, counterOnly, ruled)
	}
}

// drawnKeyRules gives most rules bans, or overrides for three clients of drawCounters, or both: another limit, an exemption, a ban.
func drawnKeyRules(t *testing.T, redis redis.Cmdable, memory *memorystore.Store, rules []*store.Rule) map[*store.Rule]*store.KeyRules {
	keyRules := make(map[*store.Rule]*store.KeyRules)
	for i, rule := range rules {
		k := &store.KeyRules{Ban: &store.Ban{For: time.Second, After: int64(2 + i%4), Within: 2 * time.Second, UpTo: 4 * time.Second}, Overrides: i%3 < 2}
		if i%5 == 0 {
			k.Ban = nil
		}
		if k.Ban == nil && !k.Overrides || i%7 == 0 {
			continue
		}
		keyRules[rule] = k
		limit := algorithms.Limit{Events: 3}
		if rule.Counter() == algorithms.Counter(algorithms.LeakyBucket{}) {
			limit.Mode, limit.MaxWait = algorithms.ModeQueue, 500*time.Millisecond
		}
		for client, to := range []store.Override{{Kind: store.KindLimit, Limit: limit}, {Kind: store.KindExempt}, {Kind: store.KindBanned}} {
			if !k.Overrides {
				continue
			}
			c := store.Check{Rule: rule, Key: fmt.Sprint("client", client)}
			prepared, err := rule.PrepareOverride(to)
			must(t, err)
			kind, tail := prepared.Wire()
			err = errors.Join(memory.SetRule(t.Context(), rule, store.Selector{Key: c.Key}, to),
				redis.Set(t.Context(), "o"+stateKey(&c), string(kind)+strings.Repeat("\x00", 8)+tail, 0).Err())
			must(t, err)
		}
	}
	return keyRules
}

// sharedRules are rules of every algorithm but concurrency, which needs names and real time.
func sharedRules(t *testing.T) (rules []*store.Rule) {
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue
		}
		for _, events := range []int64{1, 7, 30} {
			limit := algorithms.Limit{Events: events, Window: time.Second}
			rules = append(rules, storetest.Rule(t, fmt.Sprint(name, events), name, limit))
		}
	}
	queue := algorithms.Limit{Events: 9, Window: time.Second, Mode: algorithms.ModeQueue, MaxWait: 400 * time.Millisecond}
	interval := algorithms.Limit{Events: 5, Window: time.Second, Refill: algorithms.RefillInterval, Burst: 8}
	day := algorithms.Limit{Events: 2000, Calendar: algorithms.Day}
	return append(rules,
		storetest.Rule(t, "queue", "leaky_bucket", queue),
		storetest.Rule(t, "interval", "token_bucket", interval),
		storetest.Rule(t, "day", "fixed_window", day))
}

// drawChecks draws the checks of one request, with few keys, so that requests meet.
func drawChecks(random *rand.Rand, rules []*store.Rule, first int) (checks []store.Check) {
	for i := range 1 + random.IntN(3) {
		checks = append(checks, store.Check{
			Rule:        rules[(first+i*5)%len(rules)],
			Key:         strings.Repeat("k", random.IntN(2)),
			Cost:        []int64{0, 1, 1, 1, 1, 1, 1, 3}[random.IntN(8)],
			Independent: random.IntN(12) == 0,
		})
	}
	return checks
}

// drawCounters draws the checks of one of 60 clients. Each client always has the same rules of
// Counters and the same cost. Every other request comes from three of them.
func drawCounters(random *rand.Rand, rules []*store.Rule) (checks []store.Check) {
	client := random.IntN(3 + 57*random.IntN(2))
	for i := range len(rules) {
		rule := rules[(client+i*5)%len(rules)]
		if rule.Counter() != nil && len(checks) < 1+client%3 {
			checks = append(checks, store.Check{
				Rule: rule,
				Key:  fmt.Sprint("client", client),
				Cost: []int64{1, 1, 1, 0, 3}[client%5],
			})
		}
	}
	return checks
}

// compare asks the memory store for a group of a request, and compares the decisions.
func compare(t *testing.T, memory *memorystore.Store, w waiter, checks []store.Check, n int) {
	t.Helper()
	var group []store.Check
	for _, op := range w.Ops[w.first : w.first+n] {
		check := checks[op.Index]
		check.Independent = false
		group = append(group, check)
	}
	want := make([]algorithms.Decision, n)
	must(t, memory.Take(context.Background(), group, want))
	for i := range group {
		if got := w.Decisions[w.Ops[w.first+i].Index]; got != want[i] {
			t.Fatalf("%s %v, cost %d:\n got %+v\nwant %+v", group[i].Rule.Algorithm().Name(), group[i].Rule.Limit(), group[i].Cost, got, want[i])
		}
	}
}

// TestSlotThatWasNotCharged: what a careful call has not charged, beside a refusal, is not given back. A slot is, because a call before
// may have taken it; it is not renewed.
func TestSlotThatWasNotCharged(t *testing.T) {
	slots, bucket := storetest.Rule(t, "s", "concurrency", algorithms.Limit{Events: 1}), storetest.Rule(t, "b", "token_bucket", storetest.Limit("token_bucket", 1, time.Minute))
	r, b := new(Request), NewBatch()
	for i, rule := range []*store.Rule{slots, bucket} {
		r.Ops = append(r.Ops, Op{Rule: rule, Prepared: rule.At(0), Key: rule.Zone(), Cost: 1, LeaseID: storetest.LeaseID(rule), Alone: true, Index: i})
		r.EndGroup()
	}
	r.Expect(2)
	b.Add(r)
	b.TakeCare(Unwritten("OOM command not allowed"))
	r.Decisions[0].Allowed, r.Decisions[1].Allowed = true, true
	if b.failUncharged(); r.Err != nil || r.Decisions[0].Uncharged || !r.Decisions[1].Uncharged || r.Ops[0].LeaseID != "" {
		t.Errorf("%v, %+v, lease %q", r.Err, r.Decisions, r.Ops[0].LeaseID)
	}
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
