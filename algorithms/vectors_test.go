package algorithms_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model/vectors"
)

// TestGoldenVectors plays the scenarios in testdata/vectors. With UPDATE_GOLDEN=1 it writes
// the decisions into them instead, and leaves the requests as they are.
func TestGoldenVectors(t *testing.T) {
	dir := filepath.Join("..", "testdata", "vectors")
	for _, f := range vectors.Load(t, dir) {
		if os.Getenv("UPDATE_GOLDEN") == "1" {
			text := f.Update(func() vectors.Key { return newPlayer(t, f.Algorithm) })
			if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, s := range f.Scenarios {
			t.Run(f.Name+"/"+s.Title, func(t *testing.T) { s.Play(t, newPlayer(t, f.Algorithm)) })
		}
	}
}

// player is one key, decided by the algorithms in Go.
type player struct {
	testing.TB
	algorithm algorithms.Algorithm
	states    map[string]*key // by family
	turns     map[string]int64
}

func newPlayer(t testing.TB, name string) *player {
	return &player{TB: t, algorithm: newKey(t, name).algorithm, states: make(map[string]*key), turns: make(map[string]int64)}
}

// stateFor returns what the key remembers of the limit's family.
func (p *player) stateFor(l algorithms.Limit) *key {
	family := p.algorithm.Family(l)
	if p.states[family] == nil {
		p.states[family] = &key{algorithm: p.algorithm}
	}
	return p.states[family]
}

func (p *player) params(l algorithms.Limit, now int64) algorithms.Params {
	params, err := p.algorithm.Prepare(l)
	if err != nil {
		p.Fatal(err)
	}
	if dated, ok := p.algorithm.(algorithms.FixedWindow); ok && l.Calendar != 0 {
		params, _, _ = dated.PrepareAt(l, time.UnixMicro(now))
	}
	return params
}

// Take implements [vectors.Key].
func (p *player) Take(l algorithms.Limit, now, cost int64, name string) (d algorithms.Decision) {
	d = p.stateFor(l).ask(p.params(l, now), now, cost, 0, name)
	d.At = now
	p.turns[name] = d.Turn()
	return d
}

// Ahead implements [vectors.Key].
func (p *player) Ahead(l algorithms.Limit, now, want int64, name string) (units int64, lasts time.Duration) {
	p.turns[name] = now
	d := p.stateFor(l).ask(p.params(l, now), now, 0, want, name)
	return d.Units, d.Lasts
}

// Renew implements [vectors.Key].
func (p *player) Renew(l algorithms.Limit, now, cost int64, name string) {
	p.algorithm.(algorithms.Leaser).Lease(&p.stateFor(l).leases, p.params(l, now), now, cost, name)
}

// Adjust implements [vectors.Key].
func (p *player) Adjust(l algorithms.Limit, now, at, delta int64, name string) {
	p.stateFor(l).adjust(p.params(l, now), now, at, p.turns[name], delta, name)
}
