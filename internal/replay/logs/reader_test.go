package logs_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// TestDatesThatDoNotExist: a day that its month does not have is no date, in any form.
func TestDatesThatDoNotExist(t *testing.T) {
	for text, ok := range map[string]bool{
		"31/Feb/2026:10:00:06 +0000": false, "29/Feb/2026:10:00:06 +0000": false, "29/Feb/2028:10:00:06 +0000": true,
		"31/Apr/2026:10:00:06 +0000": false, "31/Dec/2026:23:59:60 +0000": true, "29/Feb/2100:10:00:06 +0000": false,
		"30/Feb/2026:10:00:06 +0000": false, "28/Feb/2026:10:00:06 +0000": true,
	} {
		r, err := logs.Open("access.log", strings.NewReader(`203.0.113.7 - - [28/Feb/2026:10:00:06 +0000] "GET / HTTP/1.1" 200 12 "-" "x"`+"\n"+
			`203.0.113.7 - - [`+text+`] "GET / HTTP/1.1" 200 12 "-" "x"`+"\n"), logs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var first, second logs.Record
		if err := r.Next(&first); err != nil {
			t.Fatal(err)
		}
		if err := r.Next(&second); (err == nil) != ok {
			t.Errorf("%s: %v, want a date: %v", text, err, ok)
		}
	}
}
