//go:build deep

package protocol

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestLendFailingKey: a key of which the script fails holds up no other key of the call, and what was
// lent of it stays lent.
func TestLendFailingKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, ctx := server.Admin(), context.Background()
	script := NewScript(nil).Lend
	rule := storetest.Rule(t, "z", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Hour})
	ask := func(key string, number int64) LendOp {
		return LendOp{Rule: rule, Prepared: rule.At(0), Key: key, Ask: lend.Ask{Borrower: 1, Number: number, Want: 10, Lease: 1e6, Cost: 1}}
	}
	for _, key := range []string{"good", "bad"} {
		if a := callLend(t, client, script, []LendOp{ask(key, 1)})[0]; a.Held != 10 {
			t.Fatalf("%s: %+v", key, a)
		}
	}
	book := client.LIndex(ctx, "bad", -1).Val()
	const writes = "if c.changed or c.taken then write(c) end"
	script = TextScript(strings.Replace(script.Text, writes, "if c.key == 'bad' then error('it is bad') end "+writes, 1))
	if err := client.ScriptLoad(ctx, script.Text).Err(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	var keys []any
	groups := [][]LendOp{{ask("bad", 2)}, {ask("good", 2)}}
	for _, g := range groups {
		text, keys = AppendLend(text, keys, g)
	}
	reply, err := client.Do(ctx, append([]any{"evalsha", script.Digest, len(keys)}, append(keys, text)...)...).Text()
	if err != nil {
		t.Fatal(err)
	}
	read := NewLendReply(reply, false)
	first, err := read.Group(groups[0])
	if err != nil || first[0].Err == nil {
		t.Errorf("the key that fails: %+v, %v", first, err)
	}
	second, err := read.Group(groups[1])
	if err != nil || second[0].Err != nil || !second[0].Allowed || second[0].Held != 10 {
		t.Errorf("the other key: %+v, %v", second, err)
	}
	if err := read.End(); err != nil {
		t.Error(err)
	}
	if now := client.LIndex(ctx, "bad", -1).Val(); now != book {
		t.Errorf("the loans of the key were %q, and are %q", book, now)
	}
	if left := client.TTL(ctx, "bad").Val(); left <= 0 {
		t.Errorf("the key lives for %v", left)
	}
	// Alone, it is an error of the call.
	text, keys = AppendLend(nil, nil, groups[0])
	if err := client.Do(ctx, append([]any{"evalsha", script.Digest, len(keys)}, append(keys, text)...)...).Err(); err == nil {
		t.Errorf("a call that fails: %v", err)
	}
}
