package stats

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestBansOfLongKeys: clients choose how long keys are, so running bans must not keep them.
func TestBansOfLongKeys(t *testing.T) {
	var b Bans
	until := time.Now().Add(time.Hour)
	before := heap()
	for i := range maxBans {
		b.Begin(strings.Repeat("k", 64<<10+i), Ban{Until: until})
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d bans of keys of 64 kB take %d bytes", maxBans, grown)
	}
	if !b.End(strings.Repeat("k", 64<<10)) || b.End("other") {
		t.Error("a ban is not found by its key")
	}
	if ended, next := b.Ended(until); len(ended) != maxBans-1 || !next.IsZero() {
		t.Errorf("%d bans have ended, want %d", len(ended), maxBans-1)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
