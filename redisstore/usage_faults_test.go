package redisstore_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// usageSender sends batches of sums as a process does: each until it is confirmed, one after the other.
type usageSender struct {
	t         *testing.T
	store     *redisstore.Store
	keys      int // in each batch
	confirmed atomic.Int64
	failed    atomic.Int64
}

// send sends a batch of a request of each key.
func (u *usageSender) send(batch int64) {
	u.t.Helper()
	var keys []string
	for i := range u.keys {
		keys = append(keys, fmt.Sprint("key ", i))
	}
	sums := usageOf("api", keys...)
	patient.Until(u.t, "a batch to be confirmed", func() bool {
		err := u.store.AddUsage(u.t.Context(), "a", batch, sums)
		if err != nil {
			u.failed.Add(1)
		}
		return err == nil
	})
	u.confirmed.Add(int64(u.keys))
}

// TestUsageWhileASlotMoves: sums are sent while slots of a Cluster move to another node and back. Each counts once.
func TestUsageWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	u := &usageSender{t: t, store: open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()}), keys: 60}
	u.store.Silence()
	u.send(1)
	var name string
	for _, node := range c.Nodes() {
		for _, one := range node.Admin().Keys(t.Context(), "rl:usage*").Val() {
			if strings.Contains(one, ":kkey ") {
				name = one
			}
		}
	}
	var stop atomic.Bool
	var wait sync.WaitGroup
	batch := int64(1)
	wait.Go(func() {
		for !stop.Load() {
			batch++
			u.send(batch)
		}
	})
	move(t, c, name, func(t *testing.T) {
		before := u.confirmed.Load()
		patient.Until(t, "a batch that is sent as a whole", func() bool { return u.confirmed.Load() >= before+2*int64(u.keys) })
	})
	stop.Store(true)
	wait.Wait()
	requests, cost, keys := usedBy(t, u.store, "api")
	if want := u.confirmed.Load(); requests != want || cost != 10*want || keys != u.keys {
		t.Errorf("%d requests, cost %d, %d keys; want %d of %d", requests, cost, keys, want, u.keys)
	}
	t.Logf("%d batches, %d failed calls", batch, u.failed.Load())
}

// TestUsageOverAFailover: a killed master loses only what it had confirmed and its replica had not got. What was on its way
// then counts once.
func TestUsageOverAFailover(t *testing.T) {
	t.Parallel()
	g := redistest.StartSentinel(t, nil, nil)
	u := &usageSender{t: t, store: open(t, redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs(), Timeout: time.Second}), keys: 20}
	u.store.Silence()
	batch := int64(0)
	for range 20 {
		batch++
		u.send(batch)
	}
	master := g.Master()
	// WAIT is about the writes of its own connection, so one comes after all those of the store.
	conn := master.Admin().Conn()
	defer conn.Close()
	conn.Set(t.Context(), "mark", 1, time.Minute)
	if n, err := conn.Wait(t.Context(), 1, patient.Patience).Result(); n != 1 || err != nil {
		t.Fatalf("%d replicas have all, error %v", n, err)
	}
	copied := u.confirmed.Load()

	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for !stop.Load() {
			batch++
			u.send(batch)
		}
	})
	patient.Until(t, "further batches", func() bool { return u.confirmed.Load() > copied })
	master.Kill()
	before := u.confirmed.Load() + int64(u.keys) // and perhaps the batch that was under way
	g.AwaitSwitch(master)
	patient.Until(t, "batches after the failover", func() bool { return u.confirmed.Load() > before })
	stop.Store(true)
	wait.Wait()
	sent := u.confirmed.Load()
	requests, cost, keys := usedBy(t, u.store, "api")
	if most, least := sent, copied+sent-before; requests > most || requests < least || cost != 10*requests || keys != u.keys {
		t.Errorf("%d requests, cost %d, %d keys; want from %d to %d of %d", requests, cost, keys, least, most, u.keys)
	}
	t.Logf("%d of %d requests are lost, %d failed calls", sent-requests, sent, u.failed.Load())
}

// TestUsageTakesMemory: what a key takes in Redis is what docs/admin.md says: with 20,000 keys 229 bytes, with a million 211.
func TestUsageTakesMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	if err := s.AddUsage(t.Context(), "a", 1, usageOf("api", "first")); err != nil {
		t.Fatal(err)
	}
	before, n := int64(memory(t, server, "used_memory")), deep.Steps(20_000, 1_000_000)
	for i := 0; i < n; i += store.MaxUsageBatch {
		var keys []string
		for j := range store.MaxUsageBatch {
			keys = append(keys, fmt.Sprintf("203.0.%09d", i+j)) // as long as an address of IPv4 can be
		}
		if err := s.AddUsage(t.Context(), "a", int64(2+i/store.MaxUsageBatch), usageOf("api", keys...)); err != nil {
			t.Fatal(err)
		}
	}
	each := (int64(memory(t, server, "used_memory")) - before) / int64(n)
	if t.Logf("%d bytes a key", each); each < 190 || each > 270 {
		t.Errorf("%d bytes a key, docs/admin.md says about 230", each)
	}
}
