package redisstore

import (
	"context"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestReach: Redis then knows the script, and has nothing else to show for it.
func TestReach(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, err := New(Options{Address: server.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if answered, _ := s.topology.(single).only.reach(); !answered {
		t.Fatal("not reached")
	}
	known := server.Admin().ScriptExists(context.Background(), s.script.Load().digest).Val()
	if keys := server.Admin().DBSize(context.Background()).Val(); keys != 0 || len(known) != 1 || !known[0] {
		t.Errorf("the script is known: %v, %d keys", known, keys)
	}
	server.Kill()
	if answered, _ := s.topology.(single).only.reach(); answered {
		t.Error("reached, but Redis is dead")
	}
}
