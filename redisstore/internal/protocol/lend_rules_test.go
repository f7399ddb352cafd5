//go:build deep

package protocol

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// overruled is one key of a zone that lends, with what may take precedence over its limit, in Go.
type overruled struct {
	rule      *store.Rule
	own       lend.Key // by the limit of the rule
	elsewhere lend.Account
	override  store.Override
	prepared  *store.PreparedOverride
	ends      int64 // of the override; 0: never
	ban       *store.Ban
	refusals  algorithms.State
}

// account returns a new account.
func account(rule *store.Rule) lend.Account {
	switch a := rule.Algorithm().(type) {
	case algorithms.Counter:
		return &lend.Counter{Algorithm: a, Params: rule.At(0).Params}
	default:
		return &lend.Log{Algorithm: a.(algorithms.Recorder), Params: rule.At(0).Params, Log: new(algorithms.Log)}
	}
}

// under sets the numbers of an account.
func under(a lend.Account, p algorithms.Params) {
	switch a := a.(type) {
	case *lend.Counter:
		a.Params = p
	case *lend.Log:
		a.Params = p
	}
}

// refusing is the account of a key that is banned.
type refusing struct {
	lend.Account
	left int64
}

func (r refusing) Decide(now, cost, more int64) algorithms.Decision {
	d := r.Account.Decide(now, cost, more)
	if d.Allowed {
		d = r.Account.Decide(now, 0, more)
	}
	return d.Ban(r.left)
}

// decide decides an ask. If its request does not ask again, a ban counts each refusal.
func (o *overruled) decide(now int64, ask lend.Ask, final bool) lend.Answer {
	key := lend.Key{Account: o.own.Account, Book: o.own.Book}
	defer func() { o.own.Book = key.Book }()
	kind, params := o.override.Kind, o.rule.At(0).Params
	if o.ends != 0 && o.ends <= now {
		kind = store.KindNone
	}
	under(key.Account, params)
	left := o.ban.Left(o.refusals, now)
	if kind == store.KindBanned {
		if left = o.ends - now; o.ends == 0 {
			left = -1
		}
	}
	key.Overruled = kind != store.KindNone || left != 0
	encoded := ""
	if kind == store.KindLimit {
		params, encoded = o.prepared.Params(params), o.prepared.Encoded()
	}
	if kind == store.KindExempt {
		ask.Cost = 0
		answer := lend.Decide(now, []*lend.Key{&key}, []lend.Ask{ask})[0]
		answer.Decision = algorithms.Decision{Allowed: true, Exempt: true, At: now}
		return answer
	}
	decided := &key
	var answer lend.Answer
	if encoded != "" && o.prepared.States(o.rule.States()) != o.rule.States() {
		report := ask
		report.Cost = 0
		answer = lend.Decide(now, []*lend.Key{&key}, []lend.Ask{report})[0]
		decided, ask = &lend.Key{Account: o.elsewhere, Overruled: true}, lend.Ask{Cost: ask.Cost}
	}
	under(decided.Account, params)
	if left != 0 {
		decided.Account = refusing{decided.Account, left}
	}
	got := lend.Decide(now, []*lend.Key{decided}, []lend.Ask{ask})[0]
	if decided == &key {
		answer = got
	} else {
		answer.Decision, answer.Overruled = got.Decision, true
	}
	answer.Banned, answer.Override = left != 0, encoded
	if !answer.Allowed && left == 0 && (final || !answer.Own) {
		var begins int64
		if o.refusals, begins, _ = o.ban.Refused(o.refusals, now); begins > 0 {
			answer.Decision = answer.Ban(begins)
			answer.Banned, answer.BanBegins, answer.Overruled = true, true, true
		}
	}
	return answer
}

// change draws another override, and writes it.
func (o *overruled) change(t *testing.T, r *rand.Rand, client *redis.Client, name string, now int64) {
	t.Helper()
	limit := algorithms.Limit{Events: 1 + r.Int64N(2*o.rule.Limit().Events)}
	if o.rule.Algorithm().Name() == "token_bucket" {
		limit = algorithms.Limit{Events: o.rule.Limit().Events, Burst: 1 + r.Int64N(2*o.rule.Limit().Events)}
	}
	if r.IntN(3) == 0 {
		limit.Window = 2 * o.rule.Limit().Window
	}
	o.ends = int64(r.IntN(2)) * (now + 1e6 + r.Int64N(3e7))
	o.override = []store.Override{{}, {}, {Kind: store.KindExempt}, {Kind: store.KindBanned}, {Kind: store.KindLimit, Limit: limit}, {Kind: store.KindLimit, Limit: limit}}[r.IntN(6)]
	if o.override.Kind == store.KindNone {
		client.Del(context.Background(), name)
		return
	}
	var err error
	if o.prepared, err = o.rule.PrepareOverride(o.override); err != nil {
		t.Fatal(err)
	}
	kind, tail := o.prepared.Wire()
	value := string(binary.BigEndian.AppendUint64([]byte{kind}, uint64(o.ends))) + tail
	if err := client.Set(context.Background(), name, value, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestLendKeyRulesGoEqualsLua is TestLendGoEqualsLua for keys with overrides and bans.
func TestLendKeyRulesGoEqualsLua(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Admin()
	script := NewScript(redistest.KeyClock("lend:now")).Lend
	for _, name := range []string{"token_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		a, err := algorithms.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(deep.Steps(15, 1000)) {
			r := rand.New(rand.NewPCG(seed, 9))
			limit := algorithms.Limit{Events: 2 + r.Int64N(200), Window: time.Duration(1+r.Int64N(100)) * time.Second}
			rule, err := store.NewLendingRule("z", a, limit, 0, 10*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			overruledSchedule(t, r, client, script, rule, fmt.Sprintf("%s %d", name, seed))
		}
	}
}

func overruledSchedule(t *testing.T, r *rand.Rand, client *redis.Client, script *Script, rule *store.Rule, story string) {
	t.Helper()
	ban := &store.Ban{For: 5 * time.Second, After: 1 + r.Int64N(5), Within: 10 * time.Second, UpTo: 20 * time.Second}
	o := &overruled{rule: rule, own: lend.Key{Account: account(rule)}, elsewhere: account(rule), ban: ban}
	key := "rl:{" + story + "}:"
	op := LendOp{Rule: rule, Prepared: rule.At(0), Key: key + rule.ID(), KeyRules: &KeyRules{Override: key + "override", BanState: key + "ban", Ban: ban}}
	now, numbers := storetest.Start, [3]int64{}
	var borrower uint64
	var loan lend.Answer // the last one
	for step := range 80 {
		now += r.Int64N(1+rule.Limit().Window.Microseconds()/20) * r.Int64N(2)
		if err := client.Set(context.Background(), "lend:now", now, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if r.IntN(6) == 0 {
			o.change(t, r, client, op.KeyRules.Override, now)
			if o.override.Kind == store.KindLimit && o.prepared.States(rule.States()) != rule.States() {
				client.Del(context.Background(), key+o.prepared.States(rule.States()).ID)
				o.elsewhere = account(rule)
			}
		}
		a := lend.Ask{Cost: r.Int64N(1 + rule.Limit().Events)}
		if n := r.IntN(4); n < 3 {
			numbers[n]++
			a.Borrower, a.Number, a.Spent = uint64(n+1), numbers[n], r.Int64N(100)
			a.Live, a.Want, a.Lease, a.Borrows = r.Int64N(20)*r.Int64N(2), r.Int64N(100), 1+r.Int64N(3e6), r.IntN(4) == 0
		} else if loan.Held > 0 { // it asks for itself, for more than is free, and no more than its borrower holds beside that
			a.Borrower, a.Cost = borrower, loan.Remaining+1+r.Int64N(loan.Held)
		}
		op.Ask, op.Final = a, r.IntN(3) == 0
		want, got := o.decide(now, a, op.Final), callLend(t, client, script, []LendOp{op})[0]
		if want.Held > 0 {
			borrower, loan = a.Borrower, want
		}
		if got.Answer != want {
			t.Fatalf("%s, step %d, override %+v until %d, now %d:\n  ask %+v, final %t\n  Go  %+v\n  Lua %+v", story, step, o.override, o.ends, now, a, op.Final, want, got.Answer)
		}
	}
}
