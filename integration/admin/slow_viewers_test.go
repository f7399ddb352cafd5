package admin_test

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestViewersThatDoNotRead: viewers that do not read lose their places to others.
func TestViewersThatDoNotRead(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.ByQuery(harness.Memory))
	watch := func() (*bufio.Reader, string) {
		conn, err := net.Dial("unix", filepath.Join(s.Dir, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, "GET /rate_limit/decisions?rate=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		from := bufio.NewReaderSize(conn, 16)
		status, err := from.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return from, strings.TrimSpace(status)
	}
	for i := range 16 {
		if _, status := watch(); status != "HTTP/1.1 200 OK" {
			t.Fatalf("viewer %d: %s", i, status)
		}
	}
	if _, status := watch(); status != "HTTP/1.1 503 Service Unavailable" {
		t.Fatalf("one too many: %s", status)
	}
	client := harness.NewClient(t, "")
	patient.Until(t, "a place of those who do not read", func() bool {
		for range 200 {
			s.Get(client, harness.WithKey(strings.Repeat("k", 900)))
		}
		_, status := watch()
		return status == "HTTP/1.1 200 OK"
	})
}
