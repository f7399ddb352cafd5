package pool

import (
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
)

// gates has the gate of a zone. It outlives configs, because what it has learned of the upstream holds
// for the next one.
type gates struct {
	mu      sync.Mutex
	gate    *gate.Gate
	options *gate.Options // that are in force
}

// Gate returns the zone's gate. It makes one with these options if there is none.
func (s *ZoneState) Gate(o gate.Options) *gate.Gate {
	g := &s.gates
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gate == nil {
		o.Wall = wall
		g.gate, g.options = gate.New(o), &o
	}
	return g.gate
}

// ApplyGate gives the gate the options of a config that begins to run. The returned function gives it back those that were
// in force before, unless another config has begun to run since.
func (s *ZoneState) ApplyGate(o gate.Options) (revert func()) {
	g := &s.gates
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.options
	s.setGate(&o)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.options == &o {
			s.setGate(before)
		}
	}
}

func (s *ZoneState) setGate(o *gate.Options) {
	o.Wall = wall
	s.gates.options = o
	s.gates.gate.Configure(*o)
}

func wall() int64 { return time.Now().UnixNano() }
