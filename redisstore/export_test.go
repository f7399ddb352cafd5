package redisstore

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// NewWithClock is New, but the script reads the time from a key, in microseconds, and keys
// outlive any test, because a test's time does not pass for Redis.
func NewWithClock(options Options, key string) (*Store, error) {
	s, err := New(WithoutRenewal(options))
	if err == nil {
		s.script.Store(protocol.NewScript(redistest.KeyClock(key)))
	}
	return s, err
}

// WithoutRenewal keeps a store from renewing leases by itself: they fall due by the machine's
// clock, and tests that set the time have another one.
func WithoutRenewal(options Options) Options {
	options.clock = func() time.Time { return time.Time{} }
	return options
}

// SetToday sets this process's own idea of the time.
func (s *Store) SetToday(now func() int64) { s.today = now }

// Key returns where Redis keeps a state.
func (s *Store) Key(rule *store.Rule, key string) string { return s.keys.State(rule.ID(), key) }

// ScriptText returns the script that Redis runs.
func (s *Store) ScriptText() string { return s.script.Load().Text }

// SetScript makes Redis run another script.
func (s *Store) SetScript(text string) { s.script.Store(protocol.TextScript(text)) }

// Direct returns the store without the layers above the link, so that nothing is held and no refusal is remembered.
func (s *Store) Direct() store.Store { return direct{s} }

type direct struct{ *Store }

// Take implements [store.Store].
func (s direct) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	return s.link.Take(ctx, checks, decisions)
}

// Adjust implements [store.Store].
func (s direct) Adjust(adjustments ...store.Adjustment) { s.link.Adjust(adjustments...) }

// Beat sends a heartbeat now.
func (s *Store) Beat() { s.heartbeat.beat(10 * time.Second) }

// Silence ends the heartbeats of a store, for tests that count commands.
func (s *Store) Silence() { s.heartbeat.leave() }

// Flush returns when all adjustments have been carried out.
func (s *Store) Flush() {
	s.link.Outbox.Retry()
	s.link.SendWaiting(context.Background())
}

// Waiting returns how many adjustments wait to be carried out.
func (s *Store) Waiting() int { return s.link.Waiting() }

// Renew renews a lease at once, as the store does when it is due.
func (s *Store) Renew(c store.Check) error {
	return s.link.Renew(context.Background(), []store.Check{c})[0].Err
}

// Servers returns the addresses of the servers that are asked.
func (s *Store) Servers() (all []string) {
	for _, n := range s.servers.Masters() {
		all = append(all, n.Address)
	}
	return all
}

// HasAnswered reports whether a server has answered the store.
func (s *Store) HasAnswered() bool { return s.hasAnswered() }
