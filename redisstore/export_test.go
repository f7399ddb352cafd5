package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// NewWithClock is New with the script's time read from a key, in microseconds, and
// with keys that outlive any test: a test's time does not pass for Redis.
func NewWithClock(options Options, key string) (*Store, error) {
	s, err := New(WithoutRenewal(options))
	if err == nil {
		s.script.Store(newScript("{ 0, redis.call('GET', '"+key+"') }", time.Hour))
	}
	return s, err
}

// WithoutRenewal has a store renew no lease by itself: they fall due by the machine's
// clock, and tests that set the time have another one.
func WithoutRenewal(options Options) Options {
	options.clock = func() time.Time { return time.Time{} }
	return options
}

// SetToday sets this process's own idea of the time.
func (s *Store) SetToday(now func() int64) { s.today = now }

// Key is where Redis keeps a state.
func (s *Store) Key(rule *store.Rule, key string) string { return s.key(rule.ID(), key) }

// ScriptText is what Redis gets to run.
func (s *Store) ScriptText() string { return s.script.Load().text }

// SetScript makes Redis run something else.
func (s *Store) SetScript(text string) {
	digest := sha1.Sum([]byte(text)) //nolint:gosec // as in script.go
	s.script.Store(&script{text: text, digest: hex.EncodeToString(digest[:])})
}

// Remembered is how many refusals are remembered, of at most MaxRemembered.
func (s *Store) Remembered() int { return int(s.denied.size.Load()) }

const MaxRemembered = deniedShards * maxDenied

// Beat tells the fleet now, rather than when it is time.
func (s *Store) Beat() { s.presence.beat(lifetime, 10*time.Second) }

// Silence ends the beats of a store, for tests that count commands.
func (s *Store) Silence() { s.presence.leave() }

// SetClocks has the script read the time, in microseconds, from the one of some keys that the
// node has on which it runs.
func (s *Store) SetClocks(keys []string) {
	s.script.Store(newScript(`(function()
		for _, key in ipairs({ '`+strings.Join(keys, "', '")+`' }) do
			local now = redis.pcall('GET', key)
			if type(now) == 'string' then return { 0, now } end
		end
	end)()`, time.Hour))
}

// Settled returns when what was to be given back has been.
func (s *Store) Settled() {
	s.returns.retry()
	s.giveBack(context.Background())
}

// Waiting is how many corrections wait to be carried out.
func (s *Store) Waiting() int {
	s.returns.sending.Lock()
	defer s.returns.sending.Unlock()
	s.returns.mu.Lock()
	defer s.returns.mu.Unlock()
	return len(s.returns.waiting) + len(s.returns.failed)
}

// SlotOf is the slot of a key in Redis.
func SlotOf(key string) uint16 { return slotOf(key) }

// MayHaveRun tells whether an error leaves open what became of the call.
func MayHaveRun(err error) bool { return mayHaveRun(err) }

// SettleBatch is how many corrections one call takes.
const SettleBatch = settleBatch

// Renew renews a lease at once, as settle does when it is due.
func (s *Store) Renew(c store.Check) error {
	errs, _ := s.settleAll(context.Background(), []item{s.item(&c, opRenew, c.Hold, 0)})
	return errs[0]
}

// SetPatience sets how long the nodes of a Cluster have to answer a look after the first
// one. It is for a store that has not been asked anything.
func (s *Store) SetPatience(d time.Duration) { s.topology.(*cluster).patience = d }

// Suspect has the servers looked for soon.
func (s *Store) Suspect() { s.topology.suspect() }

// NodeOf is the address of the node that is believed to have a key, and the state of its
// breaker.
func (s *Store) NodeOf(key string) (address, breaker string) {
	l := s.topology.(*cluster).table[slotOf(key)].Load()
	if l == nil {
		return "", ""
	}
	return l.address, l.breaker.state()
}

// KindOf is the kind of an error of go-redis.
var KindOf = kind
