package pool

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestOneLineForEachChange: while a store fails a thousand requests, or every other one, one line
// is logged when that begins and one when it is over.
func TestOneLineForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		logger := zap.New(core)
		h := newHealth("store redis 127.0.0.1:6379")
		down := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
		for i := range 1000 {
			h.Report(nil, logger)
			if i == 500 {
				h.Report(down, logger)
			}
		}
		for range 1000 {
			h.Report(down, logger)
			h.Report(nil, logger)
			time.Sleep(10 * time.Millisecond) // on the test's own clock
		}
		if logs.Len() != 1 {
			t.Fatalf("%d lines, want 1: %v", logs.Len(), logs.All())
		}
		if h.Answers() {
			t.Error("the store counts as answering although it only answers now and then")
		}
		time.Sleep(recoveryTime + 1)
		for range 1000 {
			h.Report(nil, logger)
		}
		if !h.Answers() {
			t.Error("the store does not count as answering again")
		}
		lines := logs.All()
		if len(lines) != 2 || lines[0].Message != "the rate limit store does not answer" || lines[1].Message != "the rate limit store answers again" {
			t.Fatalf("want a line for each change: %v", lines)
		}
		if n := h.ErrorCount(store.FailureRefused); n != 1001 {
			t.Errorf("%d errors counted, want 1001", n)
		}
		if lines[0].ContextMap()["error"] != "dial: connection refused" || lines[0].ContextMap()["store"] != "store redis 127.0.0.1:6379" {
			t.Errorf("the line does not say why: %v", lines[0].ContextMap())
		}
	})
}

// answering is a store whose server answers probes.
type answering struct {
	store.Store
	store.Shared
}

func (answering) Instances() int { return 1 }

func (answering) Probe(context.Context) (store.Condition, error) { return store.Condition{}, nil }

// TestAnIdleStoreComesBack: after one lost call, a store that no request asks any more counts as answering within a few seconds.
func TestAnIdleStoreComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		s := &Store{Store: answering{nil, nil}, Health: newHealth("store redis")}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go (&Ref{Store: s}).Probe(ctx, zap.New(core))
		time.Sleep(time.Minute)
		s.Health.Report(context.DeadlineExceeded, zap.New(core))
		time.Sleep(silence)
		if s.Health.Answers() {
			t.Error("a probe has told at once what requests tell")
		}
		time.Sleep(2 * probeInterval)
		if !s.Health.Answers() || logs.FilterMessage("the rate limit store answers again").Len() != 1 {
			t.Errorf("after %s without a request: %v", silence+2*probeInterval, logs.All())
		}
	})
}
