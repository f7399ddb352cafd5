package filelock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/filelock"
)

// open opens the same file once more, as another process would.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// TestLock: one has the lock, TryLock fails meanwhile, and Lock returns when the other's file is closed.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := open(t, path)
	if err := filelock.Lock(first); err != nil {
		t.Skip(err)
	}
	if filelock.TryLock(open(t, path)) == nil {
		t.Fatal("two have the lock")
	}
	second := open(t, path)
	locked := make(chan error, 1)
	go func() { locked <- filelock.Lock(second) }()
	select {
	case <-locked:
		t.Fatal("two have the lock")
	case <-time.After(20 * time.Millisecond): // shorter finds less
	}
	_ = first.Close()
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	if filelock.TryLock(open(t, path)) == nil {
		t.Error("two have the lock")
	}
}
