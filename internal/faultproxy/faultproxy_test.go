package faultproxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
)

// TestFaults: each fault fails the command, and those of which the package says so have
// let it happen.
func TestFaults(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	client := redis.NewClient(&redis.Options{
		Addr: proxy.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	defer client.Close()
	for fault, happened := range map[faultproxy.Fault]int{
		faultproxy.CutBefore:      0,
		faultproxy.CutAfter:       1,
		faultproxy.CutWithin:      1,
		faultproxy.Late:           1,
		faultproxy.SwallowCommand: 0,
		faultproxy.SwallowReply:   1,
	} {
		t.Run(fault.String(), func(t *testing.T) {
			counter := fault.String()
			proxy.Inject(func(command string) faultproxy.Fault {
				if command == "incr" {
					return fault
				}
				return faultproxy.None
			})
			ctx, cancel := context.WithTimeout(context.Background(), faultproxy.Lateness/2)
			defer cancel()
			if n, err := client.Incr(ctx, counter).Result(); err == nil {
				t.Errorf("answered %d", n)
			}
			proxy.Inject(nil)
			if n := proxy.Count(fault); n != 1 {
				t.Errorf("%d commands had the fault, want 1", n)
			}
			if n, err := client.IncrBy(context.Background(), counter, 0).Result(); err != nil || int(n) != happened {
				t.Errorf("carried out %d times, want %d: %v", n, happened, err)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), DisableIdentity: true})
	defer client.Close()
	ctx := context.Background()
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(100 * time.Millisecond)
	start := time.Now()
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("took %v", took)
	}
}
