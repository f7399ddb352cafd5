//go:build deep

package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestLendGoEqualsLua runs random asks of random borrowers through package lend and through its Lua
// port, and compares all answers and all states.
func TestLendGoEqualsLua(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, name := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		t.Run(name, func(t *testing.T) {
			client := server.Admin()
			script := NewScript(redistest.KeyClock("lend:now")).Lend
			for seed := range uint64(deep.Steps(15, 1500)) {
				lendSchedule(t, client, script, name, seed)
			}
		})
	}
}

// lendSchedule runs one schedule of asks on two keys.
func lendSchedule(t *testing.T, client *redis.Client, script *Script, name string, seed uint64) {
	t.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 7))
	limit := algorithms.Limit{Events: 1 + r.Int64N([]int64{10, 1000, 1e9}[r.IntN(3)]), Window: time.Duration(1+r.Int64N(5e6)) * time.Microsecond * 1000}
	switch name {
	case "token_bucket", "leaky_bucket":
		limit.Burst = 1 + r.Int64N(2*limit.Events)
	case "sliding_window_log":
		limit.Events = min(limit.Events, algorithms.MaxLogEvents)
	case "fixed_window":
		limit.Align = []string{"", algorithms.AlignFirstRequest}[r.IntN(2)]
	}
	if name == "token_bucket" && r.IntN(3) == 0 {
		limit.Refill = algorithms.RefillInterval
	}
	rule := storetest.Rule(t, "z", name, limit)
	accounts, keys := make([]*lend.Key, 2), make([]string, 2)
	for i := range accounts {
		accounts[i] = &lend.Key{Account: &lend.Counter{Params: rule.At(0).Params}}
		switch a := rule.Algorithm().(type) {
		case algorithms.Counter:
			accounts[i].Account = &lend.Counter{Algorithm: a, Params: rule.At(0).Params}
		case algorithms.Recorder:
			accounts[i].Account = &lend.Log{Algorithm: a, Params: rule.At(0).Params, Log: new(algorithms.Log)}
		}
		keys[i] = fmt.Sprintf("%s-%d-%d", name, seed, i)
	}
	now := storetest.Start
	var numbers [2][4]int64
	for step := range 80 {
		gap := r.Int64N(1 + limit.Window.Microseconds()/10)
		switch r.IntN(10) {
		case 0:
			gap *= 20
		case 1:
			gap = -gap
		case 2, 3, 4:
			gap = r.Int64N(1000)
		}
		now += gap
		if err := client.Set(ctx, "lend:now", now, 0).Err(); err != nil {
			t.Fatal(err)
		}
		first, both := r.IntN(2), r.IntN(3) == 0
		var ops []LendOp
		var asks []lend.Ask
		var asked []*lend.Key
		for i := range 2 {
			if !both && i != first {
				continue
			}
			a := lend.Ask{Cost: r.Int64N(1 + min(limit.Events, 1+r.Int64N(1+limit.Events))), Borrows: r.IntN(5) == 0}
			if n := r.IntN(5); n < 4 {
				b := &numbers[i][n]
				*b += r.Int64N(3) - r.Int64N(4)/3
				a.Borrower, a.Number, a.Spent = uint64(n+1), max(0, *b), r.Int64N(1+limit.Events)
				a.Live, a.Want, a.Lease = r.Int64N(1+limit.Events)/4*r.Int64N(2), r.Int64N(1+limit.Events), 1+r.Int64N(lend.MaxLease)/(1+r.Int64N(1000))
				if r.IntN(2) == 0 {
					a.Brief = 1 + r.Int64N(2*a.Lease)
				}
				a.Scarce = r.IntN(2) == 0
			} else {
				a.Borrows = false
			}
			if a.Number == 0 {
				a.Borrows = false
			}
			ops = append(ops, LendOp{Rule: rule, Prepared: rule.At(0), Key: keys[i], Ask: a})
			asks, asked = append(asks, a), append(asked, accounts[i])
		}
		want := lend.Decide(now, asked, asks)
		got := callLend(t, client, script, ops)
		for i := range want {
			if got[i].Answer != want[i] || got[i].Lent != asked[i].Book.Held() {
				t.Fatalf("seed %d, step %d, %+v at %d:\n  ask %+v\n  Go  %+v lent %d\n  Lua %+v lent %d", seed, step, limit, now, asks[i], want[i], asked[i].Book.Held(), got[i].Answer, got[i].Lent)
			}
			if c, ok := asked[i].Account.(*lend.Counter); ok {
				stored, err := client.Get(ctx, ops[i].Key).Result()
				book, fine := lend.Parse(stored[min(stateSize, len(stored)):])
				if err == nil && (!fine || len(book) != len(asked[i].Book) || string(book.Append(nil)) != string(asked[i].Book.Append(nil))) {
					t.Fatalf("seed %d, step %d: Go %+v %+v, Lua %+v", seed, step, c.State, asked[i].Book, book)
				}
			}
		}
	}
}

// callLend runs the script.
func callLend(t *testing.T, client *redis.Client, script *Script, ops []LendOp) []LendAnswer {
	t.Helper()
	text, keys := AppendLend(nil, nil, ops)
	args := append([]any{"evalsha", script.Digest, len(keys)}, append(keys, text)...)
	reply, err := client.Do(context.Background(), args...).Text()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", script.Text
		reply, err = client.Do(context.Background(), args...).Text()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := NewLendReply(reply, false)
	answers, err := read.Group(ops)
	if err := errors.Join(err, read.End()); err != nil {
		t.Fatal(err)
	}
	return answers
}

// TestLendPeekAfterLoan: a loan that is over is not lent any more, although nobody has asked since.
// What it held was spent, and comes back.
func TestLendPeekAfterLoan(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Admin()
	script := NewScript(redistest.KeyClock("lend:now")).Lend
	at := func(now int64) {
		if err := client.Set(context.Background(), "lend:now", now, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"token_bucket", "sliding_window_log"} {
		rule := storetest.Rule(t, "z", name, algorithms.Limit{Events: 100, Window: 100 * time.Second})
		op := LendOp{Rule: rule, Prepared: rule.At(0), Key: name, Ask: lend.Ask{Borrower: 1, Number: 1, Want: 40, Lease: 1e6}}
		at(storetest.Start)
		if a := callLend(t, client, script, []LendOp{op})[0]; a.Held != 40 || a.Lent != 40 {
			t.Fatalf("%s: %+v", name, a)
		}
		op.Ask, op.Peek = lend.Ask{}, true
		at(storetest.Start + 1e6 - 1)
		if a := callLend(t, client, script, []LendOp{op})[0]; a.Lent != 40 || a.Remaining != 60 {
			t.Errorf("%s: before the end: %+v", name, a)
		}
		at(storetest.Start + 21e6)
		want := map[string]int64{"token_bucket": 80, "sliding_window_log": 60}[name]
		if a := callLend(t, client, script, []LendOp{op})[0]; a.Lent != 0 || a.Remaining != want {
			t.Errorf("%s: long after the end, want %d remaining: %+v", name, want, a)
		}
		at(storetest.Start + 200e6)
		if a := callLend(t, client, script, []LendOp{op})[0]; a.Lent != 0 || a.Remaining != 100 {
			t.Errorf("%s: when all has come back: %+v", name, a)
		}
	}
}
