//go:build deep

package redisstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendMoreThanWanted: an answer that lends more than was asked for is an error.
func TestLendMoreThanWanted(t *testing.T) {
	t.Parallel()
	const limit = 100
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	proxy.Rewrite(func(command string, reply []byte) []byte {
		const head = len("$98\r\n") + 8 + 1 + 1 // the time, that the group did not fail, and flags
		if strings.HasPrefix(command, "eval") && bytes.HasPrefix(reply, []byte("$98\r\n")) && reply[head-1] == 1 {
			if held := reply[head+5*8:]; binary.BigEndian.Uint64(held) > 0 {
				binary.BigEndian.PutUint64(held, 1_000_000)
			}
		}
		return reply
	})
	s := open(t, redisstore.Options{Address: proxy.Addr()})
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: limit, Window: 1000 * time.Hour}, 10*time.Second)
	passed := 0
	for range 2 * limit {
		d, err := decideOne(s, store.Check{Rule: rule, Key: "k", Cost: 1})
		switch {
		case err != nil && strings.Contains(err.Error(), "an invalid loan"):
			return
		case err != nil:
			t.Fatal(err)
		case d.Allowed:
			passed++
		}
	}
	t.Errorf("%d of %d passed, and no error", passed, limit)
}

// TestLendGivesBackWhatAnAskCharged: if a loan of one zone ends while another zone is asked for, and then
// the first one has no room, the request costs nothing in either.
func TestLendGivesBackWhatAnAskCharged(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	s, other := open(t, redisstore.Options{Address: proxy.Addr()}), open(t, redisstore.Options{Address: server.Addr()})
	limit := func(n int64) algorithms.Limit { return algorithms.Limit{Events: n, Window: 1000 * time.Hour} }
	narrow := lendingRule(t, "narrow", "fixed_window", limit(5000), 100*time.Millisecond)
	wide := lendingRule(t, "wide", "fixed_window", limit(1_000_000), 10*time.Second)
	request := func(cost int64) (bool, error) {
		var d [2]algorithms.Decision
		err := s.Take(context.Background(), []store.Check{{Rule: narrow, Key: "k", Cost: 1}, {Rule: wide, Key: "k", Cost: cost}}, d[:])
		return d[0].Allowed && d[1].Allowed, err
	}
	passed := int64(0)
	patient.Until(t, "loans of both zones, those of the narrow one short", func() bool {
		if pass, err := request(1); errors.Is(err, store.ErrBusy) {
			return false // a loan was over before its answer was read
		} else if !pass || err != nil {
			t.Fatal(pass, err)
		}
		passed++
		lent := s.Stats().Lent
		return passed > 2000 && lent["narrow"] > 20 && lent["wide"] > 2
	})

	// The answer about the wide zone is held up until the loan of the narrow one is over, and others have
	// used all of that.
	let, held := make(chan struct{}), make(chan struct{})
	release, hold := sync.OnceFunc(func() { close(let) }), sync.OnceFunc(func() { close(held) })
	defer release()
	quota := binary.BigEndian.AppendUint64(nil, uint64(wide.Limit().Events))
	proxy.Rewrite(func(_ string, reply []byte) []byte {
		if bytes.Contains(reply, quota) {
			hold()
			<-let
		}
		return reply
	})
	type outcome struct {
		pass bool
		err  error
	}
	answer := make(chan outcome, 1)
	go func() {
		pass, err := request(300_000) // more than is held
		answer <- outcome{pass, err}
	}()
	select {
	case <-held:
	case o := <-answer:
		t.Fatalf("without an ask: %+v", o)
	}
	patient.Until(t, "others to use all of the narrow zone", func() bool {
		floodAll(t, []*redisstore.Store{other}, 1000, 1, func() []store.Check { return []store.Check{{Rule: narrow, Key: "k", Cost: 1}} })
		lent, _, err := other.Lent(context.Background(), narrow, "k")
		return err == nil && lent == 0 && used(t, server, narrow) == narrow.Limit().Events
	})
	release()
	if o := <-answer; o.pass || o.err != nil {
		t.Fatalf("the narrow zone has no room: %+v", o)
	}
	s.Flush()
	closed(t, s)
	if n := used(t, server, wide); n != passed {
		t.Errorf("%d used of the wide zone, want %d: the request that was refused was charged", n, passed)
	}
}
