package world

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// instance is a Caddy.
type instance struct {
	number int
	store  *redisstore.Store
}

// open starts an instance.
func (w *world) open(t *testing.T, i int) *instance {
	s, err := redisstore.New(redisstore.Options{
		Address: "redis:6379", Timeout: timeout, PoolSize: 20, Instance: fmt.Sprintf("i%d", i),
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx, i) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &instance{number: i, store: s}
}
