//go:build deep

package topology

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// TestCloseEndsAll: when Close returns, nothing asks Sentinels any more, although they are well, hang or are dead.
func TestCloseEndsAll(t *testing.T) {
	g := redistest.StartSentinel(t, nil, []redistest.Option{redistest.WithPassword("p")})
	var script atomic.Pointer[protocol.Script]
	script.Store(protocol.NewScript(nil))
	for _, c := range []struct {
		name  string
		fall  func(*redistest.Server)
		until func(s *Topology) bool
	}{
		{"well", func(*redistest.Server) {}, func(*Topology) bool { return true }},
		{"frozen", (*redistest.Server).Freeze, func(*Topology) bool {
			return slices.ContainsFunc(running(), func(stack string) bool { return strings.Contains(stack, "topology.locate(") })
		}},
		{"dead", (*redistest.Server).Kill, func(t *Topology) bool { t.mu.Lock(); defer t.mu.Unlock(); return len(t.of) == 3 }},
	} {
		done := make(chan struct{})
		config := &node.Config{Timeout: time.Second, Script: &script, ProbeKey: func(uint16) string { return "probe" }, Done: done}
		var sentinels []*redis.Options
		for _, address := range g.Addrs() {
			o := config.Options(address)
			o.Password = "p"
			sentinels = append(sentinels, o)
		}
		s := NewSentinel(redistest.MasterName, sentinels, config, zap.NewNop)
		patient.Until(t, "a master", func() bool { _, err := s.Node(context.Background(), 0); return err == nil })
		for _, one := range g.Sentinels() {
			c.fall(one)
		}
		patient.Until(t, "Sentinels that are "+c.name, func() bool { return c.until(s) })
		begun := time.Now()
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		patient.Soon(t, c.name+": Close", time.Since(begun), 2*surveyTimeout)
		t.Logf("%s: closed in %v", c.name, time.Since(begun))
		if stacks := running(); len(stacks) > 0 {
			t.Errorf("%s: %d goroutines are left:\n%s", c.name, len(stacks), strings.Join(stacks, "\n\n"))
		}
		close(done)
		for _, one := range g.Sentinels() {
			one.Thaw()
		}
	}
}

// running returns the stacks of the goroutines of this package, without that of the test.
func running() (stacks []string) {
	text := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if strings.Contains(stack, "internal/topology.") && !strings.Contains(stack, "testing.tRunner") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
