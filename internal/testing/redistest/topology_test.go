package redistest

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
)

func TestSentinel(t *testing.T) {
	g := StartSentinel(t, []Option{WithPassword("p")}, []Option{WithPassword("q")})
	first := g.Master()
	ctx := context.Background()
	if err := first.Admin().Set(ctx, "a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	replicated(t, first)
	g.Failover()
	g.Await()
	second := g.Master()
	if second == first {
		t.Fatal("no failover")
	}
	replicated(t, second)
	second.Kill()
	if third := g.AwaitSwitch(second); third != first {
		t.Fatal("the old master does not take over")
	}
	if err := first.Admin().Get(ctx, "a").Err(); err != nil {
		t.Fatalf("the value is lost: %v", err)
	}
}

func TestCluster(t *testing.T) {
	c := StartCluster(t, 3, 1)
	ctx := context.Background()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	if err := client.Set(ctx, "a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}

	from := c.MasterOf("a")
	to := c.Nodes()[0]
	if from == to {
		to = c.Nodes()[1]
	}
	move := c.StartMove(c.SlotOf("a"), from, to)
	move.MoveKeys()
	if got := client.Get(ctx, "a").Val(); got != "1" {
		t.Errorf("while the slot moves: %q", got)
	}
	move.Finish()
	if got := client.Get(ctx, "a").Val(); got != "1" || c.MasterOf("a") != to {
		t.Errorf("after the slot has moved: %q on %s", got, c.MasterOf("a").Addr())
	}

	to.Kill()
	if now := c.MasterOf("a"); now == to {
		t.Error("a dead node serves the key")
	}
	to.Restart()
	c.Await()
	if got := client.Get(ctx, "a").Val(); got != "1" {
		t.Errorf("after the failover: %q", got)
	}
}

func TestClusterOverTLS(t *testing.T) {
	c := StartCluster(t, 2, 0, WithTLS(true), WithArgs("--tls-cluster", "yes"))
	if c.MasterOf("a") == nil || len(c.TLSAddrs()) != 2 {
		t.Error("no master")
	}
}

// replicated waits until the replica has everything that the master has. The rest would be lost
// with the master.
func replicated(t *testing.T, master *Server) {
	t.Helper()
	if err := master.Admin().Incr(context.Background(), "written").Err(); err != nil {
		t.Fatal(err)
	}
	err := childprocess.Poll(startTimeout, func(ctx context.Context) error {
		n, err := master.Admin().Do(ctx, "wait", 1, 1000).Int()
		if err == nil && n < 1 {
			err = errors.New("the replica has not caught up")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
