package redisstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// plainStore is a store and the clients of a plain call: of all Counters, and of limits
// that recover in anything from no time to a year.
func plainStore(t *testing.T) (*redistest.Server, *Store, []store.Check) {
	server := redistest.Start(t)
	s := newStore(t, server, 10*time.Second)
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
			rule := storetest.Rule(t, fmt.Sprint(name, limit.Events), name, limit)
			checks = append(checks, store.Check{Rule: rule, Key: fmt.Sprint("client", len(checks)%3), Cost: 1})
		}
	}
	return server, s, checks
}

// newStore is a store that asks Redis each time.
func newStore(t *testing.T, server *redistest.Server, timeout time.Duration) *Store {
	s, err := New(Options{Address: server.Addr(), Timeout: timeout, DenyCache: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// together makes one call of the checks, each for a question of its own.
func together(t *testing.T, s *Store, checks []store.Check) ([]*question, error) {
	t.Helper()
	c := newCall()
	defer c.free()
	asked := make([]*question, len(checks))
	for i := range checks {
		asked[i] = newQuestion()
		if err := asked[i].ask(s, checks[i:i+1], new(settled)); err != nil {
			t.Fatal(err)
		}
		c.add(asked[i])
	}
	err := s.topology.(single).only.evaluate(context.Background(), c, false)
	if !c.plain {
		t.Fatal("the call is not plain")
	}
	return asked, err
}

// TestPlainCallExpires: keys live at least until their state is worth nothing, and not
// much longer; peeks and refusals make none.
func TestPlainCallExpires(t *testing.T) {
	t.Parallel()
	server, s, checks := plainStore(t)
	admin, ctx := server.Admin(), context.Background()
	for i := range checks {
		checks[i].Cost = int64(i%2) * math.MaxInt32
	}
	if _, err := together(t, s, checks); err != nil {
		t.Fatal(err)
	}
	if n := admin.DBSize(ctx).Val(); n != 0 {
		t.Errorf("peeks and refusals made %d keys", n)
	}
	for i := range checks {
		checks[i].Cost = 1
	}
	asked, err := together(t, s, checks)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range asked {
		key, d := s.key(checks[i].Rule.ID(), checks[i].Key), q.decisions[0]
		if !d.Allowed {
			t.Errorf("%s is refused", key)
		}
		// The time since the decision has passed for the key as well.
		if ttl := admin.PTTL(ctx, key).Val(); ttl < d.ResetAfter-time.Second || ttl > d.ResetAfter*5/4+3*time.Second {
			t.Errorf("%s: ttl %v, full again after %v", key, ttl, d.ResetAfter)
		}
	}
}

// TestPlainCallDamaged: what is not a state counts as none, is noticed, and is replaced.
func TestPlainCallDamaged(t *testing.T) {
	t.Parallel()
	server, s, checks := plainStore(t)
	admin, ctx := server.Admin(), context.Background()
	const list = "a list"
	texts := []string{list, "", "hello", strings.Repeat("x", 25), strings.Repeat("\x7f\xff\xff\xff\xff\xff\xff\xff", 3)}
	for i := range checks {
		key, text := s.key(checks[i].Rule.ID(), checks[i].Key), texts[i%len(texts)]
		err := admin.Set(ctx, key, text, 0).Err()
		if text == list {
			err = errors.Join(admin.Del(ctx, key).Err(), admin.RPush(ctx, key, text).Err())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asked, err := together(t, s, checks)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range asked {
		d := q.decisions[0]
		if !d.Allowed || d.Remaining != d.Quota-1 {
			t.Errorf("%q: %+v", texts[i%len(texts)], d)
		}
		// Numbers that cannot be are known to the algorithms alone.
		if noticed := q.damaged == checks[i].Rule; noticed != (len(texts[i%len(texts)]) != stateBytes) {
			t.Errorf("%q: noticed: %v", texts[i%len(texts)], noticed)
		}
		if ttl := admin.PTTL(ctx, s.key(checks[i].Rule.ID(), checks[i].Key)).Val(); ttl <= 0 {
			t.Errorf("%q: left without an expiry", texts[i%len(texts)])
		}
	}
}

// TestPlainCallLies: a reply that cannot be is an error, never a decision.
func TestPlainCallLies(t *testing.T) {
	t.Parallel()
	_, s, checks := plainStore(t)
	checks = checks[:2]
	now := uint64(storetest.Start)
	reply := func(now uint64, room uint16, more int) string {
		b := binary.BigEndian.AppendUint64(nil, now)
		b = binary.BigEndian.AppendUint16(b, room)
		return string(append(b, bytes.Repeat([]byte{0}, 2*stateBytes+more)...))
	}
	for what, text := range map[string]string{
		"nothing":                  "",
		"half a time":              "1234",
		"a state too few":          reply(now, 2, -stateBytes),
		"a byte too few":           reply(now, 2, -1),
		"a byte too many":          reply(now, 2, 1),
		"damage to no key":         reply(now, 2, 2),
		"damage to a third of two": reply(now, 2, 0) + "\x00\x03",
		"room for more":            reply(now, 3, 0),
		"room for fewer":           reply(now, 1, 0),
		"before 1970":              reply(1<<63, 2, 0),
		"the end of time":          reply(1<<62, 2, 0),
	} {
		s.SetScript(fmt.Sprintf("return '%s'", escaped(text)))
		if _, err := together(t, s, checks); err == nil {
			t.Errorf("%s is believed", what)
		}
	}
	s.SetScript(fmt.Sprintf("return '%s'", escaped(reply(now, 2, 0)+"\x00\x02")))
	asked, err := together(t, s, checks)
	if err != nil || asked[0].damaged != nil || asked[1].damaged != checks[1].Rule {
		t.Errorf("%v, damaged: %v and %v", err, asked[0].damaged, asked[1].damaged)
	}
}

// escaped is a text as Lua reads it between quotes.
func escaped(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "\\%03d", text[i])
	}
	return b.String()
}

// TestPlainCallForgotten: a Redis that has forgotten the script gets it, and what is sent
// then is the same, also where it had to be sorted.
func TestPlainCallForgotten(t *testing.T) {
	t.Parallel()
	server, s, all := plainStore(t)
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
		asked, err := together(t, s, append([]store.Check{checks[len(checks)-1]}, checks[:len(checks)-1]...))
		if err != nil {
			t.Fatal(err)
		}
		for j, q := range asked {
			cost := int64(1 + (j+1)%2)
			if d := q.decisions[0]; !d.Allowed || d.Remaining != 10-(i+1)*cost {
				t.Errorf("call %d, request %d: %+v", i, j, d)
			}
		}
	}
}
