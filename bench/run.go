package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// plan says how long and how often to measure.
type plan struct {
	workloads []workload
	rounds    int
	time      time.Duration // of each cell
	progress  io.Writer
}

// run checks all peers, then measures them in turn, round after round.
func (p *plan) run(ctx context.Context, server *rig.Redis) (*results, error) {
	r := &results{rounds: map[cell][]figures{}, bytes: map[string]int64{}}
	for _, w := range p.workloads {
		for _, peer := range w.peers {
			if err := check(ctx, server, peer, w.limit.zones); err != nil {
				return nil, fmt.Errorf("%s does not count right: %w", peer.name, err)
			}
			bytes, err := bytesPerKey(ctx, server, peer)
			if err != nil {
				return nil, fmt.Errorf("bytes of %s: %w", peer.name, err)
			}
			r.bytes[peer.name] = bytes
		}
	}
	for round := range p.rounds {
		for i := range p.workloads {
			w := &p.workloads[i]
			fmt.Fprintf(p.progress, "round %d of %d: %s\n", round+1, p.rounds, w.name)
			for i := range w.peers {
				peer := w.peers[(i+round)%len(w.peers)] // no peer is always the first
				if err := p.visit(ctx, server, r, w, peer); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", w.name, peer.name, err)
				}
			}
		}
	}
	return r, nil
}

// visit measures one peer in one workload, where all keys exist.
func (p *plan) visit(ctx context.Context, server *rig.Redis, r *results, w *workload, peer peer) error {
	if err := server.Empty(ctx); err != nil {
		return err
	}
	l, err := peer.open(server.Address, w.limit)
	if err != nil {
		return err
	}
	defer l.close()
	if err := visit(ctx, l, w.clients); err != nil {
		return err
	}
	for _, goroutines := range w.goroutines {
		f, t, err := measure(ctx, server, l, goroutines, w.clients, p.time)
		if err != nil {
			return err
		}
		if wrong := w.wrong(t); wrong > 0 {
			return fmt.Errorf("%s: %d of %d decisions were wrong", atOnce(goroutines), wrong, t.admitted+t.refused)
		}
		if t.failed > 0 {
			fmt.Fprintf(p.progress, "  %s, %s: %.1f %% got an error, one of them: %v\n",
				peer.name, atOnce(goroutines), 100*f.failed, t.err)
		}
		c := cell{w.name, peer.name, goroutines}
		r.rounds[c] = append(r.rounds[c], f)
	}
	return nil
}

// wrong counts the decisions that are not those of the workload.
func (w *workload) wrong(t *tally) int64 {
	if w.refuses {
		return t.admitted
	}
	return t.refused
}
