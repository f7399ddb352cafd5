package logs_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

const line = `{"level":"info","ts":1763769600.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"4711","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/a?b=1","headers":{"User-Agent":["curl/8.5.0"],"Authorization":["REDACTED"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"user_id":"","duration":0.25,"size":12,"status":200,"resp_headers":{"Server":["Caddy"]},"rate_limit":{"outcome":"allowed","zone":"clients","limit":100,"remaining":99,"cost":1}}` + "\n"

// TestCaddyLine: a line of Caddy's access log becomes a record, and other lines of Caddy do not.
func TestCaddyLine(t *testing.T) {
	r, err := logs.Open("access.log", strings.NewReader(`{"level":"info","ts":1,"msg":"serving"}`+"\n"+line+"oops\n"), logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got logs.Record
	if err := r.Next(&got); err != nil {
		t.Fatal(err)
	}
	if want := time.UnixMicro(1763769600_250000); !got.Start.Equal(want) {
		t.Errorf("it began at %v, want %v", got.Start, want)
	}
	if got.ClientIP != "203.0.113.7" || got.RemoteIP != "10.0.0.1" || got.URI != "/a?b=1" || got.Scheme != "https" ||
		got.Get("User-Agent") != "curl/8.5.0" || got.Limited == nil || got.Limited.Outcome != "allowed" || got.BytesRead != 0 {
		t.Errorf("the record is %+v", got)
	}
	if err := r.Next(&got); err != io.EOF {
		t.Errorf("the error after the last record is %v", err)
	}
	if n, first := r.NotUnderstood(); n != 1 || first.Line != 3 || first.Text != "oops" {
		t.Errorf("%d lines were not understood, the first is %+v", n, first)
	}
}

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
