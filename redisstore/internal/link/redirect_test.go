package link_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// ways are how a server is asked: each returns why it failed.
var ways = map[string]func(t *testing.T, b *bench) error{
	"Do": func(t *testing.T, b *bench) error {
		_, err := b.take(t, checkOf(t, "fixed_window"))
		return err
	},
	"DoAll": func(t *testing.T, b *bench) error {
		c := checkOf(t, "concurrency")
		return b.Renew(t.Context(), []store.Check{c})[0]
	},
	"Process": func(t *testing.T, b *bench) error {
		_, err := b.Link.Process(t.Context(), "key", func() redis.Cmder { return redis.NewCmd(t.Context(), "ping") })
		return err
	},
}

// TestFollowsDirections: however a server is asked, a call is made again where the servers say, with ASKING if they say
// so, until one takes it or there is no other to ask. The caller is told the error that is left.
func TestFollowsDirections(t *testing.T) {
	moved, ask := said("MOVED 1 b"), said("ASK 1 b")
	for name, c := range map[string]struct {
		first, second []fate // of the two servers
		directions    []direction
		left          error
		hops          []int
		asking        [2][]bool // of the calls that come to each
	}{
		"moved":            {first: []fate{{err: moved}}, directions: []direction{{1, false}}, hops: []int{1}, asking: [2][]bool{{false}, {false}}},
		"being moved":      {first: []fate{{err: ask}}, directions: []direction{{1, true}}, hops: []int{1}, asking: [2][]bool{{false}, {true}}},
		"there and back":   {first: []fate{{err: ask}}, second: []fate{{err: moved}}, directions: []direction{{1, true}, {0, false}}, hops: []int{1, 2}, asking: [2][]bool{{false, false}, {true}}},
		"a moment later":   {first: []fate{{err: said("CLUSTERDOWN Hash slot not served")}}, directions: []direction{{0, false}}, hops: []int{1}, asking: [2][]bool{{false, false}}},
		"no other":         {first: []fate{{err: moved}}, left: moved, hops: []int{1}, asking: [2][]bool{{false}}},
		"lost on the way":  {first: []fate{{err: moved}}, second: []fate{{err: context.DeadlineExceeded}}, directions: []direction{{1, false}}, left: context.DeadlineExceeded, hops: []int{1, 2}, asking: [2][]bool{{false}, {false}}},
		"taken at once":    {asking: [2][]bool{{false}}},
		"another failure":  {first: []fate{{err: said("LOADING Redis is loading")}}, left: said("LOADING Redis is loading"), hops: []int{1}, asking: [2][]bool{{false}}},
		"without the room": {first: []fate{{err: store.ErrFull}}, left: store.ErrFull, hops: []int{1}, asking: [2][]bool{{false}}},
	} {
		for way, asks := range ways {
			b := newBench(t)
			b.will(c.first...)
			b.servers.all[1].will(c.second...)
			b.directions = c.directions
			if err := asks(t, b); !errors.Is(err, c.left) || (err == nil) != (c.left == nil) {
				t.Errorf("%s, %s: %v, want %v", name, way, err, c.left)
			}
			if !slices.Equal(b.hops, c.hops) {
				t.Errorf("%s, %s: hops %v, want %v", name, way, b.hops, c.hops)
			}
			for i, s := range b.servers.all {
				var asking []bool
				for _, one := range s.got(way) {
					asking = append(asking, one.asking)
				}
				if !slices.Equal(asking, c.asking[i]) {
					t.Errorf("%s, %s: server %d is asked %v, want %v", name, way, i, asking, c.asking[i])
				}
			}
		}
	}
}

// TestOneOfABatchIsElsewhere: of several adjustments in a call, only those go on to another server that this one does not
// have.
func TestOneOfABatchIsElsewhere(t *testing.T) {
	b := newBench(t)
	second := b.servers.all[1]
	b.directions, b.lacks = []direction{{1, false}}, "b"
	var all []store.Adjustment
	var checks []store.Check
	for _, key := range []string{"a", "b", "c"} {
		c := checkOf(t, "fixed_window")
		c.Key = key
		checks = append(checks, c)
		all = append(all, store.Adjustment{Check: c, Delta: 1})
	}
	b.Adjust(all...)
	for i, c := range checks {
		if left := b.left(t, c); left != 9 {
			t.Errorf("%d are left of check %d", left, i)
		}
	}
	if first, other := b.got("DoAll"), second.got("DoAll"); len(first) != 1 || len(first[0].ops) != 3 || len(other) != 1 || len(other[0].ops) != 1 {
		t.Errorf("calls %+v and %+v", first, other)
	}
}
