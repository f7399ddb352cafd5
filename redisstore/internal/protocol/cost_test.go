//go:build deep

package protocol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

const (
	// callOnly is the lowest cost of a call of a script.
	callOnly = "return 1"

	// bareScript is the lowest cost of a decision on a few numbers: the time, 24 bytes read, and
	// 24 bytes written with an expiry.
	bareScript = `local t = redis.call('TIME')
local v = redis.call('GET', KEYS[1]) or string.rep('x', 24)
redis.call('SET', KEYS[1], v, 'PX', 60000)
return v`
)

// BenchmarkCost measures what decisions cost the Redis process: CPU time per call, also relative
// to bareScript, and bytes per key. Calls go through one connection in pipelines, the subjects
// take turns, and the results are medians.
func BenchmarkCost(b *testing.B) {
	const rounds, calls = 25, 2000
	c := newCost(b, 10_000)
	times, ratios := make(map[*subject][]float64), make(map[*subject][]float64)
	for range rounds {
		var bare float64
		for _, s := range c.subjects {
			before := c.cpu()
			c.run(s, calls)
			each := (c.cpu() - before) / calls * 1e6
			if s.text == bareScript {
				bare = each
			}
			times[s] = append(times[s], each)
		}
		for _, s := range c.subjects {
			ratios[s] = append(ratios[s], times[s][len(times[s])-1]/bare)
		}
	}
	for _, s := range c.subjects {
		b.Run(s.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(times[s]), "us-redis/op")
			b.ReportMetric(median(ratios[s]), "x-bare")
			b.ReportMetric(float64(c.bytes(s)), "B/key")
		})
	}
}

// TestCost checks what does not depend on the machine: which commands a decision takes, and the
// bytes of a key.
func TestCost(t *testing.T) {
	t.Parallel()
	c := newCost(t, 10_000)
	least := keyBytes(c.admin.Info(t.Context(), "server").Val())
	for _, s := range c.subjects {
		commands := c.commands(s, 100)
		algorithm, n, option, outcome := s.parts()
		var want string
		switch {
		case option == "bare":
			continue
		case algorithm == "sliding_window_log" && outcome == "admitted":
			// The number of charges, the newest, whether the oldest has expired, and whether the
			// next has.
			want = "lindex:3 llen:1 ltrim:1 pexpire:1 rpush:1 time:1"
		case algorithm == "sliding_window_log":
			want = "lindex:2 llen:1 time:1"
		case algorithm == "concurrency" && outcome == "admitted":
			want = "pexpire:1 time:1 zadd:1 zcard:1 zcount:1 zrangebyscore:1 zremrangebyscore:2 zrevrangebyscore:1"
		case algorithm == "concurrency" && outcome == "returned":
			want = "ltrim:1 pexpire:1 time:1 zcard:1 zcount:1 zrangebyscore:1 zrem:1 zrevrangebyscore:1 zscore:1"
		case algorithm == "concurrency":
			want = "time:1 zcount:1 zrangebyscore:2 zrevrangebyscore:1"
		case outcome == "admitted":
			want = "get:1 time:1 write:1"
		default:
			want = "get:1 time:1"
		}
		if commands != want {
			t.Errorf("%s: %s, want %s", s.name, commands, want)
		}
		bytes := c.bytes(s)
		if most := map[string]int64{"sliding_window_log": 300 + 12*n, "concurrency": 400 + 150*n}[algorithm]; bytes > max(most, least) {
			t.Errorf("%s: %d bytes a key, want at most %d", s.name, bytes, max(most, least))
		}
	}
}

// subject is something whose cost in Redis is measured: calls of a script, for some keys in turn.
type subject struct {
	name   string // algorithm, options and size / outcome
	text   string
	digest string
	keys   []string
	fill   int                  // calls for each key that come first
	args   func(i int) []any    // arguments of call i, after the key
	check  func(r string) error // checks a reply
	calls  int                  // so far
}

// parts splits a subject's name.
func (s *subject) parts() (algorithm string, n int64, option, outcome string) {
	before, outcome, _ := strings.Cut(s.name, "/")
	algorithm, option, _ = strings.Cut(before, " ")
	n, _ = strconv.ParseInt(option, 10, 64)
	return algorithm, n, option, outcome
}

// cost measures in a Redis of its own.
type cost struct {
	testing.TB
	admin    *redis.Client
	script   *Script
	subjects []*subject
}

// newCost makes subjects of up to n events or holders.
func newCost(t testing.TB, largest int) *cost {
	server := redistest.Start(t)
	c := &cost{TB: t, admin: server.Admin(), script: NewScript(nil)}
	c.bare("call bare", callOnly)
	c.bare("get_set bare", bareScript)
	c.counters()
	c.concurrency(1)
	for n := 10; n <= largest; n *= 10 {
		c.log(n)
		c.concurrency(n)
	}
	for _, s := range c.subjects {
		c.run(s, s.fill*len(s.keys))
	}
	return c
}

// bare adds a script that decides nothing, and gets the arguments of one that does.
func (c *cost) bare(name, text string) {
	rule := storetest.Rule(c, name, "token_bucket", algorithms.Limit{Events: 1_000_000, Window: time.Hour})
	c.add(&subject{name: name, text: text, fill: 1, args: c.decide(rule)}, rule, 1000)
}

// counters adds algorithms whose states are numbers. Their time stands still, so that no window ends meanwhile. The script
// asks for TIME as always.
func (c *cost) counters() {
	text := NewScript(redistest.Clock(fmt.Sprintf("(redis.call('TIME') and { 0, '%d' })", time.Now().UnixMicro()), time.Second)).Text
	const interval, queue, first = algorithms.RefillInterval, algorithms.ModeQueue, algorithms.AlignFirstRequest
	for _, s := range []struct {
		name  string
		limit algorithms.Limit
	}{
		{"token_bucket", algorithms.Limit{Window: time.Hour}},
		{"token_bucket interval", algorithms.Limit{Window: time.Hour, Refill: interval}},
		{"leaky_bucket", algorithms.Limit{Window: time.Hour}},
		{"leaky_bucket queue", algorithms.Limit{Window: time.Hour, Mode: queue, MaxWait: time.Hour}},
		{"fixed_window", algorithms.Limit{Window: time.Hour}},
		{"fixed_window first_request", algorithms.Limit{Window: time.Hour, Align: first}},
		{"fixed_window day", algorithms.Limit{Calendar: algorithms.Day}},
		{"sliding_window_counter", algorithms.Limit{Window: time.Hour}},
	} {
		algorithm, _, _ := strings.Cut(s.name, " ")
		for _, allowed := range []bool{true, false} {
			s.limit.Events = 1
			if allowed {
				s.limit.Events = 1_000_000
			}
			name := s.name + "/" + outcome(allowed)
			rule := storetest.Rule(c, fmt.Sprint("z", len(c.subjects)), algorithm, s.limit)
			c.add(&subject{name: name, text: text, fill: 1, args: c.decide(rule), check: wants(rule, Decide, allowed)}, rule, 1000)
		}
	}
}

// log adds a full log of n events, whose calls bring their time: if all are admitted, one event
// expires in each call, and if all are refused, none. The script asks for TIME as always.
func (c *cost) log(n int) {
	const start = 1_800_000_000_000_000
	text := NewScript(redistest.Clock("(redis.call('TIME') and { 0, ARGV[3] })", time.Second)).Text
	for _, allowed := range []bool{true, false} {
		name := fmt.Sprintf("sliding_window_log %d/%s", n, outcome(allowed))
		rule := storetest.Rule(c, name, "sliding_window_log", algorithms.Limit{Events: int64(n), Window: time.Hour})
		decide, step := c.decide(rule), time.Hour.Microseconds()/int64(n)
		s := &subject{name: name, text: text, fill: n, check: wants(rule, Decide, allowed)}
		s.args = func(i int) []any {
			i /= len(s.keys)
			if !allowed {
				i = min(i, n-1)
			}
			return append(slices.Clip(decide(i)), start+int64(i)*step)
		}
		c.add(s, rule, keysFor(n))
	}
}

// concurrency adds a limit with n holders: a call that asks for too much, one for one more, and
// one that gives back what the one before took.
func (c *cost) concurrency(n int) {
	for _, s := range []struct {
		outcome string
		events  int64
		kind    Kind
	}{
		{"refused", int64(n), Decide}, {"admitted", algorithms.MaxSlots, Decide}, {"returned", algorithms.MaxSlots, Adjust},
	} {
		rule := storetest.Rule(c, fmt.Sprint("concurrency", n, s.outcome == "refused"), "concurrency", algorithms.Limit{Events: s.events, Lease: time.Hour})
		fill := n
		if s.kind == Adjust {
			fill = 0
		}
		c.add(&subject{
			name: fmt.Sprintf("concurrency %d/%s", n, s.outcome), fill: fill, check: wants(rule, s.kind, s.outcome != "refused"),
			args: func(i int) []any {
				leaseID := fmt.Sprintf("%022d", i+n*keysFor(n)-fill*keysFor(n)) // as long as IDs are
				if s.kind == Adjust {
					leaseID = EncodeAdjustment(&store.Adjustment{Check: store.Check{LeaseID: leaseID}, Delta: -1})
				}
				return c.arguments(rule, s.kind, leaseID)
			},
		}, rule, keysFor(n))
	}
}

// keysFor keeps the filling short.
func keysFor(n int) int { return max(10, min(1000, 10_000/n)) }

func outcome(allowed bool) string {
	if allowed {
		return "admitted"
	}
	return "refused"
}

// decide returns the arguments of decisions by a rule.
func (c *cost) decide(rule *store.Rule) func(int) []any {
	args := c.arguments(rule, Decide, "")
	return func(int) []any { return args }
}

// arguments returns the arguments after the key.
func (c *cost) arguments(rule *store.Rule, kind Kind, leaseID string) []any {
	_, b := ask(rule, kind, leaseID)
	return slices.Clone(b.Call(new(Script))[4:])
}

// ask returns a call of one operation.
func ask(rule *store.Rule, kind Kind, leaseID string) (*Request, *Batch) {
	r, b := &Request{Ops: []Op{{Rule: rule, Prepared: rule.At(time.Now().UnixMicro()), Key: "k", Cost: 1, Kind: kind, LeaseID: leaseID}}}, NewBatch()
	r.EndGroup()
	r.Expect(1)
	b.Add(r)
	return r, b
}

// wants returns a check of replies to an operation.
func wants(rule *store.Rule, kind Kind, allowed bool) func(string) error {
	return func(reply string) error {
		r, b := ask(rule, kind, "")
		b.Call(new(Script))
		if err := b.Read(reply); err != nil {
			return err
		}
		if got := r.Decisions[0].Allowed; got != allowed {
			return fmt.Errorf("%s, want %s", outcome(got), outcome(allowed))
		}
		return nil
	}
}

// add adds a subject with a number of keys of a rule.
func (c *cost) add(s *subject, rule *store.Rule, keys int) {
	if s.text == "" {
		s.text = c.script.Text
	}
	var err error
	if s.digest, err = c.admin.ScriptLoad(context.Background(), s.text).Result(); err != nil {
		c.Fatalf("%s: %v", s.name, err)
	}
	for i := range keys {
		s.keys = append(s.keys, stateKey(&store.Check{Rule: rule, Key: fmt.Sprintf("203.0.%d.%d", i/256, i%256)}))
	}
	c.subjects = append(c.subjects, s)
}

// run makes the next n calls of a subject.
func (c *cost) run(s *subject, n int) {
	c.Helper()
	ctx := context.Background()
	for ; n > 0; n -= 1000 {
		pipe := c.admin.Pipeline()
		for range min(n, 1000) {
			pipe.Do(ctx, append([]any{"evalsha", s.digest, 1, s.keys[s.calls%len(s.keys)]}, s.args(s.calls)...)...)
			s.calls++
		}
		replies, err := pipe.Exec(ctx)
		if err != nil {
			c.Fatalf("%s: %v", s.name, err)
		}
		if s.check == nil || s.calls <= s.fill*len(s.keys) {
			continue
		}
		for _, reply := range replies {
			text, _ := reply.(*redis.Cmd).Text()
			if err := s.check(text); err != nil {
				c.Fatalf("%s: %v", s.name, err)
			}
		}
	}
}

// cpu returns the CPU time of the Redis process, in seconds.
func (c *cost) cpu() (sum float64) {
	for name, value := range c.info("cpu") {
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				c.Fatal(err)
			}
			sum += seconds
		}
	}
	return sum
}

// commands returns which commands a call of a subject runs, beside its own.
func (c *cost) commands(s *subject, n int) string {
	if err := c.admin.ConfigResetStat(context.Background()).Err(); err != nil {
		c.Fatal(err)
	}
	c.run(s, n)
	var all []string
	writes := 0
	for name, value := range c.info("commandstats") {
		name = strings.TrimPrefix(name, "cmdstat_")
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		calls, err := strconv.Atoi(value)
		if err != nil {
			c.Fatal(err)
		}
		if name == "set" || name == "setrange" { // depending on whether the expiry suffices
			if writes += calls; writes < n {
				continue
			}
			name, calls = "write", writes
		}
		// The store's own calls may come in between.
		if each := float64(calls) / float64(n); each > 0.1 && name != "evalsha" && name != "config|resetstat" && name != "info" {
			all = append(all, fmt.Sprintf("%s:%.2g", name, each))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// bytes returns how much a key of a subject takes.
func (c *cost) bytes(s *subject) int64 {
	n, err := c.admin.MemoryUsage(context.Background(), s.keys[0], 0).Result()
	if err != nil && !errors.Is(err, redis.Nil) { // a script that decides nothing keeps no key
		c.Fatalf("%s: %v", s.name, err)
	}
	return n
}

func (c *cost) info(section string) map[string]string {
	all, err := c.admin.InfoMap(context.Background(), section).Result()
	if err != nil {
		c.Fatal(err)
	}
	return slices.Collect(maps.Values(all))[0]
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
