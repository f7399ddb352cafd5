package cli

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestOverrideSays: an override says since when it holds, its author and its note, if they are known.
func TestOverrideSays(t *testing.T) {
	ago := func(d time.Duration) *time.Time {
		at := time.Now().Add(-d)
		return &at
	}
	for _, c := range []struct {
		o    *adminapi.Override
		want string
	}{
		{nil, ""},
		{&adminapi.Override{}, ""},
		{&adminapi.Override{Since: ago(time.Hour), SetBy: "ops", Note: "T-1"}, ", note: T-1"},
		{&adminapi.Override{Since: ago(49 * time.Hour), SetBy: "ops", Note: "T-1"}, ", set 2 days ago by ops, note: T-1"},
		{&adminapi.Override{Since: ago(25 * time.Hour)}, ", set 1 day ago"},
	} {
		if got := formatNote(c.o); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.o, got, c.want)
		}
	}
}
