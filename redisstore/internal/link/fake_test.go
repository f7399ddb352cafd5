package link_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	prefix  = keys.Prefix("rl")
	timeout = 50 * time.Millisecond
)

// fate is what happens to a call.
type fate struct {
	err  error         // what the link is told
	runs bool          // it is carried out all the same
	took time.Duration // but no longer than the deadline
}

// call is one that has come to a server.
type call struct {
	way   string // the method
	ops   []protocol.Op
	alone bool // the checks are decided by themselves, and no others of their request
	at    time.Time
}

// server is a Redis in this process, which decides with the algorithms in Go. Of calls that have a fate, it does
// what that says.
type server struct {
	t       testing.TB
	memory  *layertest.Below
	unready error
	damaged bool // all states

	mu    sync.Mutex
	fates []fate // of the next calls
	ever  *fate  // of those after them; nil: they are carried out
	calls []call
	seen  []*node.Request
}

func (s *server) Ready(context.Context) error { return s.unready }

func (s *server) Do(ctx context.Context, r *node.Request, _ bool) error {
	err := s.meet(ctx, call{way: "Do", ops: slices.Clone(r.Ops)}, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r)
	return err
}

func (s *server) DoAll(ctx context.Context, requests []*node.Request, _ bool) {
	c := call{way: "DoAll"}
	for _, r := range requests {
		c.ops = append(c.ops, r.Ops...)
	}
	err := s.meet(ctx, c, requests...)
	for _, r := range requests {
		r.Err = err
	}
}

func (s *server) Process(context.Context, redis.Cmder, bool) error {
	return errors.New("no test uses it")
}

// meet has a call meet its fate.
func (s *server) meet(ctx context.Context, c call, requests ...*node.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := fate{runs: true}
	if len(s.fates) > 0 {
		f, s.fates = s.fates[0], s.fates[1:]
	} else if s.ever != nil {
		f = *s.ever
	}
	for _, r := range requests {
		c.alone = r.AllAlone
	}
	c.at = time.Now()
	s.calls = append(s.calls, c)
	if f.runs {
		for _, r := range requests {
			s.run(r)
		}
	}
	if f.took > 0 {
		s.mu.Unlock()
		defer s.mu.Lock()
		select {
		case <-time.After(f.took):
		case <-ctx.Done():
		}
	}
	return f.err
}

// run carries out a request. The lock is held.
func (s *server) run(r *node.Request) {
	checks, decisions := make([]store.Check, 0, len(r.Ops)), make([]algorithms.Decision, len(r.Ops))
	for i := range r.Ops {
		switch op := &r.Ops[i]; op.Kind {
		case protocol.Decide, protocol.Peek:
			checks = append(checks, check(op))
			if s.damaged {
				r.Damaged = op.Rule
			}
		case protocol.Adjust:
			r.Decisions[op.Index].Quota = s.adjust(op)
		case protocol.Renew:
		}
	}
	if err := s.memory.Take(context.Background(), checks, decisions); err != nil {
		s.t.Error(err)
	}
	for i := range checks {
		r.Decisions[r.Ops[i].Index] = decisions[i]
	}
}

// check is what an operation asks of the memory store.
func check(op *protocol.Op) store.Check {
	c := store.Check{Rule: op.Rule, Key: keyIn(op.Key), Cost: op.Cost, LeaseID: op.LeaseID, Independent: op.Alone, Peek: op.Kind == protocol.Peek}
	if k := op.KeyRules; k != nil {
		c.KeyRules = &store.KeyRules{Overrides: k.Override != "", Ban: k.Ban}
	}
	return c
}

// keyIn returns the key in a name. The keys of tests are their own tags.
func keyIn(name string) string {
	tag, _, _ := strings.Cut(strings.TrimPrefix(name, string(prefix)+":{"), "}")
	return tag
}

// adjust carries out an adjustment, and returns 1 if it has changed anything.
func (s *server) adjust(op *protocol.Op) (changed int64) {
	c, a := check(op), store.Adjustment{}
	for i, n := range []*int64{&a.At, &a.Turn, &a.Delta} {
		*n = int64(binary.BigEndian.Uint64([]byte(op.LeaseID[8*i:])))
	}
	c.LeaseID = op.LeaseID[24:]
	a.Check = c
	a.Done = func(did bool) {
		if did {
			changed = 1
		}
	}
	s.memory.Adjust(a)
	return changed
}

// got returns the calls of a way.
func (s *server) got(way string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool { return c.way != way })
}

// will sets the fates of the next calls.
func (s *server) will(fates ...fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates = fates
}

// stay sets the fate of all calls from now on; nil: they are carried out.
func (s *server) stay(f *fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ever = f
}

// servers are two of them. The first has all keys, unless they are spread.
type servers struct {
	all      []*server
	spread   bool
	away     error // why no server is known
	failures atomic.Int64
	closed   chan time.Time // when the connections were
}

func (s *servers) OneSlot() bool { return false }

func (s *servers) Slot(key string) uint16 { return topology.SlotOf(key) }
func (s *servers) ReportFailure()         { s.failures.Add(1) }

func (s *servers) Node(_ context.Context, slot uint16) (link.Server, error) {
	if s.spread {
		return s.all[int(slot)%len(s.all)], s.away
	}
	return s.all[0], s.away
}

func (s *servers) Redirect(_ context.Context, _ link.Server, _ uint16, err error, _ int) (link.Server, bool, error) {
	return nil, false, err
}

func (s *servers) Close() error {
	s.closed <- time.Now()
	return nil
}

// script is what finishes other scripts.
var script = protocol.NewScript(nil)

// bench is a link over servers that share their memory.
type bench struct {
	*link.Link
	*servers
	*server // the first
	memory  *layertest.Below
	done    chan struct{}
	logs    *observer.ObservedLogs
}

// newBench makes a link that looks for no leases that are due, and sends nothing before a test says so.
func newBench(t testing.TB, configure ...func(*link.Config)) *bench {
	t.Helper()
	b := &bench{memory: layertest.New(t), servers: &servers{closed: make(chan time.Time, 1)}, done: make(chan struct{})}
	for range 2 {
		b.servers.all = append(b.servers.all, &server{t: t, memory: b.memory})
	}
	b.server = b.servers.all[0]
	today := layer.Date(b.memory.Now)
	core, logs := observer.New(zap.WarnLevel)
	logger := zap.New(core)
	b.logs = logs
	c := &link.Config{
		Servers: b.servers, Keys: prefix, Script: new(atomic.Pointer[protocol.Script]), Today: &today,
		Clock: func() time.Time { return time.Time{} }, Logger: func() *zap.Logger { return logger }, Ends: func() bool { return true }, Done: b.done,
	}
	c.Script.Store(script)
	for _, f := range configure {
		f(c)
	}
	b.Link = link.New(c)
	return b
}

// Adjust implements [layer.Layer]. What waits is sent at once.
func (b *bench) Adjust(adjustments ...store.Adjustment) {
	b.Link.Adjust(adjustments...)
	b.SendWaiting(context.Background())
}

// take decides one check.
func (b *bench) take(t testing.TB, c store.Check) (algorithms.Decision, error) {
	t.Helper()
	var d [1]algorithms.Decision
	err := b.Take(t.Context(), []store.Check{c}, d[:])
	return d[0], err
}

// left is what the servers have left for a check, whatever the link is told.
func (b *bench) left(t testing.TB, c store.Check) int64 {
	t.Helper()
	var d [1]algorithms.Decision
	c.Peek = true
	if err := b.memory.Take(t.Context(), []store.Check{c}, d[:]); err != nil {
		t.Fatal(err)
	}
	return d[0].Remaining
}

// said is an error that Redis answers.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}
