package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestBeats: a store sends its first heartbeat when it has been open for a second, one every five
// seconds from then on, and a farewell in the end. A store that is closed at once, as for a
// config that is only checked, leaves no trace.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lives []any
		eval := func(_ context.Context, _ string, _ []string, args ...any) ([]any, error) {
			lives = append(lives, args[1])
			return []any{int64(3), int64(0), int64(0)}, nil
		}
		for _, c := range []struct {
			open time.Duration
			want []any // for how long each heartbeat counts
		}{
			{0, nil},
			{firstBeat - 1, nil},
			{firstBeat, []any{int64(15_000), int64(6_000)}},
			{firstBeat + beatInterval, []any{int64(15_000), int64(15_000), int64(6_000)}},
			{firstBeat + 2*beatInterval - 1, []any{int64(15_000), int64(15_000), int64(6_000)}},
		} {
			lives = nil
			p := startHeartbeat(eval, func(error) {}, func(int64) {}, "rl", "x")
			time.Sleep(c.open)
			synctest.Wait()
			if want := map[bool]int{true: 3, false: 1}[c.want != nil]; p.instances() != want {
				t.Errorf("open for %v: %d instances, want %d", c.open, p.instances(), want)
			}
			p.leave()
			p.leave() // the second call does nothing
			if !slices.Equal(lives, c.want) {
				t.Errorf("open for %v: told to count for %v ms, want %v", c.open, lives, c.want)
			}
		}
	})
}

// lookers are processes that share a simulated Redis, in simulated time.
type lookers struct {
	mu    sync.Mutex
	redis *simredis.Server
	calls map[string]int // of each
	hangs string         // one that does nothing any more
}

var errHangs = errors.New("it hangs")

// eval runs a script for a process.
func (l *lookers) eval(name string) evaluate {
	return func(_ context.Context, script string, keys []string, args ...any) ([]any, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.hangs == name {
			return nil, errHangs
		}
		l.calls[name]++
		command := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
		for _, a := range args {
			command = append(command, fmt.Sprint(a))
		}
		value, err := l.redis.Call(command...)
		all, _ := value.([]any)
		return all, err
	}
}

// join adds a process.
func (l *lookers) join(t *testing.T, name string) {
	h := startHeartbeat(l.eval(name), func(err error) { t.Error(err) }, func(int64) {}, "rl", name)
	h.reports.Store(&reports{"{brief}", func() string { return "{all}" }})
	t.Cleanup(h.leave)
}

// look reads the reports.
func (l *lookers) look(t *testing.T) map[string]store.Report {
	t.Helper()
	prefix, all := keys.Prefix("rl"), make(map[string]store.Report)
	answer, err := l.eval("who looks")(t.Context(), lua.Look.Text(), []string{prefix.Instances(), prefix.Looked()}, store.LookLife.Milliseconds(), 100, 10, prefix.Report(""))
	found, errRead := readReports(answer)
	if err := errors.Join(err, errRead); err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		all[r.Process] = r
	}
	return all
}

// counted returns how many calls each instance has made since the last time.
func (l *lookers) counted() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := maps.Clone(l.calls)
	clear(l.calls)
	return calls
}

// TestReportsComeSoon: the first report of an instance with all that it counts comes when it is counted the next time, and the last
// one when nobody has looked for long. Each makes one call in an interval. One that hangs is not counted any more, and
// its report can be read for a minute.
func TestReportsComeSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lookers{redis: simredis.New(func() int64 { return time.Now().UnixMicro() }), calls: make(map[string]int)}
		for _, name := range []string{"one", "two", "three"} {
			l.join(t, name)
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		l.counted()
		time.Sleep(10 * time.Second)
		if calls := l.counted(); calls["one"] != 2 || calls["two"] != 2 {
			t.Errorf("while nobody looks, the calls are %v, want 2 of each", calls)
		}
		for name, r := range l.look(t) {
			if r.Text != "{brief}" || !r.Lives || r.Left || r.Age > store.CountInterval || !r.At.Equal(time.Now().Add(-r.Age)) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		time.Sleep(store.CountInterval)
		for name, r := range l.look(t) {
			if r.Text != "{all}" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		l.mu.Lock()
		l.hangs = "three"
		clear(l.calls)
		l.mu.Unlock()
		for range 30 {
			time.Sleep(time.Second)
			l.look(t)
		}
		if calls := l.counted(); calls["one"] != 6 || calls["two"] != 6 {
			t.Errorf("in 30s, the calls are %v, want 6 of each", calls)
		}
		if r := l.look(t)["three"]; r.Text != "{all}" || r.Lives || r.Age < 30*time.Second {
			t.Errorf("what hangs: %+v", r)
		}
		time.Sleep(time.Minute)
		if found := l.look(t); len(found) != 2 || found["one"].Text != "{brief}" {
			t.Errorf("a minute later: %+v", found)
		}
	})
}
