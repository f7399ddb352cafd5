//go:build deep

package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// killed ends a Redis, and has the store notice.
func killed(t *testing.T, s *redisstore.Store, server *redistest.Server) {
	t.Helper()
	server.Kill()
	for s.Breaker() == store.BreakerClosed {
		if attempt(s, hourly(t)) == nil {
			t.Fatal("answered, but Redis is away")
		}
	}
}

// TestAdjustmentsOutliveTheStore: a store that is closed because its config was replaced goes on
// in the background until Redis is back and has received everything that waits. Then it closes
// its connections.
func TestAdjustmentsOutliveTheStore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPersistence())
	s := open(t, redisstore.Options{Address: server.Addr(), Ends: func() bool { return false }})
	w := newOnce(t, s)
	charged := w.chargeMany(250)
	killed(t, s, server)
	for _, late := range charged {
		w.adjust(late, late.Delta)
	}
	closed(t, s)
	if n := s.Waiting(); n != len(charged) {
		t.Errorf("%d wait, want %d", n, len(charged))
	}
	server.Restart()
	patient.Until(t, "what waits to be sent", func() bool { return s.Waiting() == 0 })
	if missing, lost := w.missing(server), s.Stats().Lost; missing > 0 || lost > 0 {
		t.Errorf("%d were lost, and %d are missing", lost, missing)
	}
	patient.Until(t, "the connections to be closed", func() bool {
		clients, err := server.Admin().ClientList(context.Background()).Result()
		return err == nil && !strings.Contains(clients, server.Addr())
	})
}

// TestCloseSendsWhatWaits: a store that is closed sends its adjustments even if no request has
// noticed yet that Redis is back. If Redis does not come back, the log says how much was lost.
func TestCloseSendsWhatWaits(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	for _, back := range []bool{true, false} {
		server := redistest.Start(t, redistest.WithPersistence())
		s := open(t, redisstore.Options{Address: server.Addr(), Logger: func() *zap.Logger { return zap.New(core) }})
		w := newOnce(t, s)
		charged := w.chargeMany(10)
		killed(t, s, server)
		for _, late := range charged {
			w.adjust(late, late.Delta)
		}
		if !back {
			closed(t, s)
			if lost := s.Stats().Lost; lost != 10 {
				t.Errorf("%d were lost, want 10", lost)
			}
			continue
		}
		server.Restart()
		closed(t, s)
		if missing := w.missing(server); missing > 0 {
			t.Errorf("%d are missing", missing)
		}
	}
	said := logs.All()
	if len(said) != 1 || said[0].ContextMap()["count"] != uint64(10) {
		t.Errorf("the log says %v", said)
	}
}
