package protocol

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// cost measures in a Redis of its own.
type cost struct {
	*testing.T
	admin *redis.Client
	least int64 // bytes of any key
	zones int
}

// zone returns a new name, which is short.
func (c *cost) zone() string {
	c.zones++
	return fmt.Sprint("z", c.zones)
}

// TestCost checks what decisions cost Redis, as far as that does not depend on the machine: which commands each takes,
// and the bytes of a key.
func TestCost(t *testing.T) {
	t.Parallel()
	c := &cost{T: t, admin: redistest.Start(t).Admin()}
	c.least = keyBytes(c.admin.Info(t.Context(), "server").Val())
	const interval, queue, first = algorithms.RefillInterval, algorithms.ModeQueue, algorithms.AlignFirstRequest
	for name, limit := range map[string]algorithms.Limit{
		"token_bucket":               {Window: time.Hour},
		"token_bucket interval":      {Window: time.Hour, Refill: interval},
		"leaky_bucket":               {Window: time.Hour},
		"leaky_bucket queue":         {Window: time.Hour, Mode: queue, MaxWait: time.Hour},
		"fixed_window":               {Window: time.Hour},
		"fixed_window first_request": {Window: time.Hour, Align: first},
		"fixed_window day":           {Calendar: algorithms.Day},
		"sliding_window_counter":     {Window: time.Hour},
	} {
		c.counter(name, limit)
	}
	c.slots(1)
	for n := 10; n <= 10_000; n *= 10 {
		c.log(n)
		c.slots(n)
	}
}

// subject is something whose cost is measured: calls of a script for a key.
type subject struct {
	name    string
	rule    *store.Rule
	kind    Kind
	script  *Script
	fill    int               // calls that come first
	args    func(i int) []any // arguments of call i, after the key
	allowed bool              // what the calls after those of fill say
	want    string            // which commands each of them takes
	most    int64             // bytes of the key
}

// counter measures an algorithm whose states are numbers. Its time stands still, so that no window ends meanwhile. The
// script asks for TIME as always.
func (c *cost) counter(name string, limit algorithms.Limit) {
	clock := fmt.Sprintf("(redis.call('TIME') and { 0, '%d' })", time.Now().UnixMicro())
	algorithm, _, _ := strings.Cut(name, " ")
	for events, want := range map[int64]string{1_000_000: "get:1 time:1 write:1", 1: "get:1 time:1"} {
		limit.Events = events
		rule := storetest.Rule(c, c.zone(), algorithm, limit)
		args := arguments(rule, Decide, "")
		c.measure(&subject{
			name: name, rule: rule, script: NewScript(redistest.Clock(clock, time.Second)), fill: 1,
			args: func(int) []any { return args }, allowed: events > 1, want: want,
		})
	}
}

// log measures a full log of n events, whose calls bring their time: if all are admitted, one event expires in each
// call, and if all are refused, none. The script asks for TIME as always.
func (c *cost) log(n int) {
	const start = 1_800_000_000_000_000
	for outcome, want := range map[string]string{
		// The number of charges, the newest, whether the oldest has expired, and whether the next has.
		"admitted": "lindex:3 llen:1 ltrim:1 pexpire:1 rpush:1 time:1",
		"refused":  "lindex:2 llen:1 time:1",
	} {
		limit := algorithms.Limit{Events: int64(n), Window: time.Hour}
		rule := storetest.Rule(c, c.zone(), "sliding_window_log", limit)
		args, step, allowed := arguments(rule, Decide, ""), time.Hour.Microseconds()/int64(n), outcome == "admitted"
		c.measure(&subject{
			name: fmt.Sprint("log ", n, outcome), rule: rule, fill: n,
			script: NewScript(redistest.Clock("(redis.call('TIME') and { 0, ARGV[3] })", time.Second)),
			args: func(i int) []any {
				if !allowed {
					i = min(i, n-1)
				}
				return append(slices.Clip(args), start+int64(i)*step)
			},
			allowed: allowed, want: want, most: 300 + 12*int64(n),
		})
	}
}

// slots measures a limit with n holders: a call that asks for too much, one for one more, and one that gives back what
// the one before took.
func (c *cost) slots(n int) {
	for _, s := range []subject{
		{name: "refused", fill: n, want: "time:1 zcount:1 zrangebyscore:2 zrevrangebyscore:1"},
		{
			name: "admitted", fill: n, allowed: true,
			want: "pexpire:1 time:1 zadd:1 zcard:1 zcount:1 zrangebyscore:1 zremrangebyscore:2 zrevrangebyscore:1",
		},
		{
			name: "returned", kind: Adjust, allowed: true,
			want: "ltrim:1 pexpire:1 time:1 zcard:1 zcount:1 zrangebyscore:1 zrem:1 zrevrangebyscore:1 zscore:1",
		},
	} {
		events := int64(algorithms.MaxSlots)
		if !s.allowed {
			events = int64(n)
		}
		rule := storetest.Rule(c, fmt.Sprint("slots", n, s.allowed), "concurrency",
			algorithms.Limit{Events: events, Lease: time.Hour})
		s.name, s.rule, s.script, s.most = fmt.Sprint(n, " slots ", s.name), rule, NewScript(nil), 400+150*int64(n)
		s.args = func(i int) []any {
			leaseID := fmt.Sprintf("%022d", i+n-s.fill) // as long as IDs are
			if s.kind == Adjust {
				leaseID = EncodeAdjustment(&store.Adjustment{Check: store.Check{LeaseID: leaseID}, Delta: -1})
			}
			return arguments(rule, s.kind, leaseID)
		}
		c.measure(&s)
	}
}

// arguments returns those of a call after the key.
func arguments(rule *store.Rule, kind Kind, leaseID string) []any {
	_, b := ask(op(rule, kind, leaseID))
	return slices.Clone(b.Call(new(Script))[4:])
}

func op(rule *store.Rule, kind Kind, leaseID string) Op {
	return Op{Rule: rule, Prepared: rule.At(time.Now().UnixMicro()), Key: rule.Zone(), Cost: 1, Kind: kind, LeaseID: leaseID}
}

// ask returns a call of one group.
func ask(ops ...Op) (*Request, *Batch) {
	r, b := &Request{Ops: ops}, NewBatch()
	r.EndGroup()
	r.Expect(len(ops))
	b.Add(r)
	return r, b
}

// measure makes the calls of a subject.
func (c *cost) measure(s *subject) {
	const calls = 100
	ctx, key := c.Context(), stateKey(&store.Check{Rule: s.rule, Key: "203.0.113.7"})
	run := func(from, to int) []redis.Cmder {
		pipe := c.admin.Pipeline()
		pipe.ScriptLoad(ctx, s.script.Text)
		for i := from; i < to; i++ {
			pipe.Do(ctx, append([]any{"evalsha", s.script.Digest, 1, key}, s.args(i)...)...)
		}
		replies, err := pipe.Exec(ctx)
		if err != nil {
			c.Fatalf("%s: %v", s.name, err)
		}
		return replies
	}
	if s.fill > 0 {
		run(0, s.fill)
		bytes, err := c.admin.MemoryUsage(ctx, key, 0).Result()
		if most := max(s.most, c.least); err != nil || bytes > most {
			c.Errorf("%s: %d bytes a key, want at most %d; %v", s.name, bytes, most, err)
		}
	}
	must(c, c.admin.ConfigResetStat(ctx).Err())
	for _, reply := range run(s.fill, s.fill+calls)[1:] {
		r, b := ask(op(s.rule, s.kind, ""))
		b.Call(new(Script))
		text, _ := reply.(*redis.Cmd).Text()
		if err := b.Read(text); err != nil || r.Decisions[0].Allowed != s.allowed {
			c.Fatalf("%s: %+v, %v", s.name, r.Decisions[0], err)
		}
	}
	if got := c.commands(calls); got != s.want {
		c.Errorf("%s: %s, want %s", s.name, got, s.want)
	}
}

// commands returns which commands each of n calls has run, beside its own.
func (c *cost) commands(n int) string {
	info, err := c.admin.InfoMap(c.Context(), "commandstats").Result()
	must(c, err)
	var all []string
	writes := 0
	for name, value := range info["Commandstats"] {
		name = strings.TrimPrefix(name, "cmdstat_")
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		calls, err := strconv.Atoi(value)
		must(c, err)
		if name == "set" || name == "setrange" { // depending on whether the expiry suffices
			if writes += calls; writes < n {
				continue
			}
			name, calls = "write", writes
		}
		// What the test itself calls is rare.
		if each := float64(calls) / float64(n); each > 0.1 && name != "evalsha" {
			all = append(all, fmt.Sprintf("%s:%.2g", name, each))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestExpiriesAreKept charges keys whose clock goes on, jumps and goes back. The second in a state
// is never before the state is worth nothing, Redis keeps the key until then, and a new expiry is
// set only if the old one does not suffice.
func TestExpiriesAreKept(t *testing.T) {
	t.Parallel()
	const clock, margin = "expiries:clock", time.Second
	server := redistest.Shared(t)
	admin, ctx := server.Admin(), context.Background()
	script := NewScript(redistest.Clock("{ 0, redis.call('GET', '"+clock+"') }", margin))
	random := rand.New(rand.NewPCG(deep.Seed(1), 0))
	for _, name := range algorithms.Names() {
		a, _ := algorithms.Get(name)
		if _, counts := a.(algorithms.Counter); !counts {
			continue
		}
		rule := storetest.Rule(t, name, name, algorithms.Limit{Events: 1000, Window: 100 * time.Minute})
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		key, now, kept, moved := stateKey(&c), int64(storetest.Start), 0, 0
		var lives int64
		var expires time.Duration
		for i := range 200 {
			now += random.Int64N(20e6)
			switch jump := random.IntN(40); {
			case jump == 0, i == 100: // at least once
				now += 200 * time.Minute.Microseconds()
			case jump == 1:
				now -= time.Minute.Microseconds()
			}
			must(t, admin.Set(ctx, clock, now, 0).Err())
			b, r := NewBatch(), request([]store.Check{c}, now)
			b.Add(r)
			begun := serverTime(t, admin)
			must(t, send(admin, script, b))
			value, d := admin.Get(ctx, key).Val(), r.Decisions[0]
			if len(value) != stateSize || !d.Allowed {
				t.Fatalf("%q after %+v", value, d)
			}
			before := expires
			was := lives
			lives, expires = int64(binary.BigEndian.Uint32([]byte(value[32:]))), admin.PExpireTime(ctx, key).Val()
			if until := now + d.ResetAfter.Microseconds() + margin.Microseconds(); lives*1e6 < until {
				t.Fatalf("%s: at %d, the key lives until %d, and counts until %d", name, now, lives*1e6, until)
			}
			if lives == was {
				if kept++; expires != before {
					t.Fatalf("%s: the expiry was moved from %v to %v", name, before, expires)
				}
				continue
			}
			moved++
			if need := (now+d.ResetAfter.Microseconds())/1e6 + 2; was >= need {
				t.Errorf("%s: the expiry %d sufficed for %d", name, was, need)
			}
			life := time.Duration(lives-now/1e6) * time.Second
			if expires < begun+life-time.Millisecond || expires > serverTime(t, admin)+life {
				t.Fatalf("%s: expires at %v, want %v later than %v", name, expires, life, begun)
			}
		}
		if kept < 100 || moved < 2 {
			t.Errorf("%s: kept %d times, moved %d times", name, kept, moved)
		}
	}
}

// serverTime is the time of Redis, by which keys expire, since 1970.
func serverTime(t *testing.T, admin *redis.Client) time.Duration {
	t.Helper()
	now, err := admin.Time(context.Background()).Result()
	must(t, err)
	return time.Duration(now.UnixNano())
}

// keyBytes returns how many bytes a small key may take in a server of which this is the INFO.
func keyBytes(info string) int64 {
	switch {
	case strings.Contains(info, "valkey_version:"):
		return 168
	case strings.Contains(info, "redis_version:6."), strings.Contains(info, "redis_version:7."):
		return 152
	}
	return 160
}
