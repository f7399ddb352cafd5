package faultproxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestFaults: each fault fails the command. The command is carried out or not, as the package
// says.
func TestFaults(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	client := redis.NewClient(&redis.Options{
		Addr: proxy.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	defer client.Close()
	if err := client.Ping(context.Background()).Err(); err != nil { // so that no command has to wait for a connection
		t.Fatal(err)
	}
	for fault, happened := range map[faultproxy.Fault]int{
		faultproxy.CutBefore:      0,
		faultproxy.CutAfter:       1,
		faultproxy.CutWithin:      1,
		faultproxy.Late:           1,
		faultproxy.SwallowCommand: 0,
		faultproxy.SwallowReply:   1,
	} {
		t.Run(fault.String(), func(t *testing.T) {
			proxy.Inject(func(command string) faultproxy.Fault {
				if command == "incr" {
					return fault
				}
				return faultproxy.None
			})
			// If the client gives up before the proxy has the command, it is sent again.
			counter := fault.String()
			patient.Until(t, "the command to have the fault", func() bool {
				ctx, cancel := context.WithTimeout(context.Background(), faultproxy.Lateness/2)
				if n, err := client.Incr(ctx, counter).Result(); err == nil {
					t.Errorf("answered %d", n)
				}
				cancel()
				return proxy.Count(fault) > 0
			})
			proxy.Inject(nil)
			patient.Until(t, "the command to be carried out, or not", func() bool {
				n, err := client.IncrBy(context.Background(), counter, 0).Result()
				wanted := happened * proxy.Count(fault)
				if err != nil || int(n) > wanted {
					t.Fatalf("carried out %d times, want %d: %v", n, wanted, err)
				}
				return int(n) == wanted
			})
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
