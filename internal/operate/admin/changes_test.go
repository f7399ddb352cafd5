package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestSummary: what is logged of a reload that changes thousands of zones is bounded.
func TestSummary(t *testing.T) {
	var all []adminapi.ZoneDiff
	for i := range 5000 {
		all = append(all, adminapi.ZoneDiff{Zone: fmt.Sprint(i), Kind: adminapi.ZoneGone})
	}
	if text := summary(all); !strings.HasSuffix(text, "; zone 9 is gone; and 4990 more") {
		t.Errorf("%q", text)
	}
	all[0].Zone = strings.Repeat("\x01", 1<<20)
	if text := summary(all); len(text) > 2048 || !strings.HasSuffix(text, "...") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
