package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// A peer has to count correctly before it is measured: of eight requests of a client it must
// admit the first five, and another client's as well.
const (
	checkEvents   = 5
	checkRequests = 8
)

func check(ctx context.Context, server *rig.Redis, p peer, zones int) error {
	if err := server.Empty(ctx); err != nil {
		return err
	}
	events := int64(checkEvents)
	if p.lends {
		events = dailyEvents // a slot that is given back may take a moment
	}
	l, err := p.open(server.Address, limit{events: events, period: 24 * time.Hour, zones: zones})
	if err != nil {
		return err
	}
	defer l.close()
	decide := l.taker()
	for i := range checkRequests {
		admitted, err := decide(ctx, 0)
		if err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
		if want := i < checkEvents || p.floor || p.lends; admitted != want {
			return fmt.Errorf("request %d of %d a day: admitted is %v", i+1, checkEvents, admitted)
		}
	}
	admitted, err := decide(ctx, 1)
	if err == nil && !admitted {
		err = fmt.Errorf("the first request of another client was refused")
	}
	return err
}

// bytesPerKey is how much one client takes in Redis once it has come twice; 0 for a peer that
// leaves nothing, because it has given everything back.
func bytesPerKey(ctx context.Context, server *rig.Redis, p peer) (int64, error) {
	if p.lends {
		return 0, nil
	}
	if err := server.Empty(ctx); err != nil {
		return 0, err
	}
	l, err := p.open(server.Address, limit{events: dailyEvents, period: 24 * time.Hour, zones: 1})
	if err != nil {
		return 0, err
	}
	defer l.close()
	decide := l.taker()
	for range 2 {
		if _, err := decide(ctx, maxClients-1); err != nil {
			return 0, err
		}
	}
	return server.Memory(ctx)
}
