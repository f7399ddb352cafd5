package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestJournal: all processes read what one of them has added, the newest last, and the oldest entries go.
func TestJournal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})
	for i := range store.MaxJournal + 5 {
		if err := a.AddToJournal(t.Context(), fmt.Sprint("entry ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.ReadJournal(t.Context(), 2); err != nil || fmt.Sprint(got) != "[entry 1003 entry 1004]" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := b.ReadJournal(t.Context(), 2*store.MaxJournal); err != nil || len(got) != store.MaxJournal || got[0] != "entry 5" {
		t.Errorf("%d entries, %v", len(got), err)
	}
	if err := a.AddToJournal(t.Context(), strings.Repeat("x", store.MaxJournalEntry+1)); err == nil {
		t.Error("an entry that is too long is added")
	}
}
