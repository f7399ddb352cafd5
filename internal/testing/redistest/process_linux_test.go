package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
)

// TestOutlivesTheThreadOfItsStart: the server must not end with the OS thread that started it, at
// whose end the kernel sends the signal.
func TestOutlivesTheThreadOfItsStart(t *testing.T) {
	t.Parallel()
	require(t)
	var s *Server
	tid := onThrowawayThread(func() { s = Start(t) })
	err := childprocess.Poll(startTimeout, func(context.Context) error {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid))
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("thread %d is still there: %w", tid, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustPing(t, s.Admin())
}

// onThrowawayThread calls f on an OS thread that ends after it, as the thread
// of a goroutine does that locks it and never unlocks it. The main thread does
// not, so it is kept busy while another does the work.
func onThrowawayThread(f func()) (tid int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		tid = syscall.Gettid()
		if tid == os.Getpid() {
			tid = onThrowawayThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
	return tid
}
