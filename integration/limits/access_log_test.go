package limits_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"
)

// arrival is a request in the upstream's access log.
type arrival struct {
	id      int
	client  string
	key     string
	path    string
	reached int64 // when, in microseconds of Unix time
}

// readAccessLog reads the JSON lines that Caddy writes.
func readAccessLog(t *testing.T, file string) (arrivals []arrival) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(text) {
		var l struct {
			Time     float64 `json:"ts"`
			Duration float64 `json:"duration"`
			Status   int     `json:"status"`
			Request  struct {
				URI     string      `json:"uri"`
				Headers http.Header `json:"headers"`
			} `json:"request"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("access log: %v: %s", err, text)
		}
		id, err := strconv.Atoi(l.Request.Headers.Get("X-Request-Id"))
		if err != nil || l.Status != http.StatusOK {
			t.Fatalf("access log: request %q, status %d: %s", l.Request.Headers.Get("X-Request-Id"), l.Status, text)
		}
		arrivals = append(arrivals, arrival{
			id:      id,
			client:  l.Request.Headers.Get("X-Client"),
			key:     l.Request.Headers.Get("X-Api-Key"),
			path:    l.Request.URI,
			reached: int64((l.Time - l.Duration) * 1e6),
		})
	}
	return arrivals
}
