//go:build deep

package costs_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// teller streams events, and says what it has used in the last one. The first event is sent before a gate opens. Early
// hints come before it, and trailers at the end. Answers to other paths have no stream.
func teller(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	const usage = `{"usage":{"total_tokens":700}}`
	header, whole := w.Header(), func(status int) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", fmt.Sprint(len(usage)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, usage)
	}
	switch r.URL.Path {
	case "/whole":
		whole(http.StatusOK)
	case "/part":
		header.Set("Content-Range", "bytes 0-29/100")
		whole(http.StatusPartialContent)
	case "/unchanged":
		w.WriteHeader(http.StatusNotModified)
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
	case "/twice":
		header.Set("Content-Encoding", "gzip, br")
		whole(http.StatusOK)
	}
	if r.URL.Path != "/stream" && r.URL.Path != "/zipped" {
		return
	}
	header.Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	header.Del("Link")
	header.Set("Content-Type", "Text/Event-Stream;Charset=UTF-8")
	header.Set("Trailer", "X-Digest")
	var to io.Writer = w
	var zipped *gzip.Writer
	if r.URL.Path == "/zipped" {
		header.Set("Content-Encoding", "gzip")
		zipped = gzip.NewWriter(w)
		to = zipped
	}
	for i, event := range tellerEvents {
		if _, err := io.WriteString(to, event); err != nil {
			return
		}
		if zipped != nil {
			_ = zipped.Flush()
		}
		_ = http.NewResponseController(w).Flush()
		if i == 0 {
			b.Hold(r)
		}
	}
	if zipped != nil {
		_ = zipped.Close()
	}
	header.Set("X-Digest", "abc")
}

var tellerEvents = []string{
	": a comment\nevent: delta\ndata: {\"delta\":\"{\\\"usage\\\":{\\\"total_tokens\\\":1}}\"}\n\n",
	"id: 7\rdata: {\"usage\":\rdata: {\"total_tokens\":699}}\r\r",
	"data: {\"\\u0075sage\":{\"total_tokens\":700}}\r\n\r\n",
	"data: [DONE]\n\n",
}

// TestStreamsPassInEveryVersion: in each version of HTTP, a stream passes unchanged while its cost is read: each
// event when it is sent, with early hints and trailers, compressed or not. Answers without a body that could say
// a cost keep the booking.
func TestStreamsPassInEveryVersion(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, teller)
	s, versions := harness.StartEveryVersion(t, "", `
		rate_limit {
			zone tokens {
				key           {header.X-Client}
				algorithm     fixed_window 100000/1000h
				align         first_request
				cost          500
				cost_response json usage.total_tokens
			}
		}
		reverse_proxy {$UPSTREAM}`, b.Variable())
	for _, to := range versions {
		ask := func(method, path string) (*http.Response, string) {
			t.Helper()
			client := fmt.Sprintf("%d%s%s", to.Major, method, strings.TrimPrefix(path, "/"))
			hints := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
				if status == http.StatusEarlyHints && header.Get("Link") != "" {
					hints++
				}
				return nil
			}})
			r, err := http.NewRequestWithContext(ctx, method, to.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Client", client)
			r.Header.Set("X-Gate", client)
			r.Header.Set("Accept-Encoding", "gzip")
			response, err := to.Client.Do(r)
			if err != nil {
				t.Fatalf("HTTP/%d %s: %v", to.Major, path, err)
			}
			t.Cleanup(func() { response.Body.Close() })
			if streams := path == "/stream" || path == "/zipped"; streams && hints != 1 {
				t.Errorf("HTTP/%d %s: %d early hints", to.Major, path, hints)
			}
			return response, client
		}
		for _, path := range []string{"/stream", "/zipped"} {
			response, client := ask(http.MethodGet, path)
			var from io.Reader = response.Body
			if path == "/zipped" {
				var err error
				if from, err = gzip.NewReader(response.Body); err != nil {
					t.Fatal(err)
				}
			}
			events := bufio.NewReader(from)
			first := make([]byte, len(tellerEvents[0]))
			if _, err := io.ReadFull(events, first); err != nil || string(first) != tellerEvents[0] {
				t.Fatalf("HTTP/%d %s: %q, %v", to.Major, path, first, err)
			}
			b.Open(client) // before, the upstream sends no more
			rest, err := io.ReadAll(events)
			if want := strings.Join(tellerEvents[1:], ""); err != nil || string(rest) != want {
				t.Errorf("HTTP/%d %s: %q, %v, want %q", to.Major, path, rest, err, want)
			}
			if got := response.Trailer.Get("X-Digest"); got != "abc" {
				t.Errorf("HTTP/%d %s: trailer %q", to.Major, path, got)
			}
			s.AwaitUsed("what the stream says", "tokens", client, 700)
		}
		for _, c := range []struct {
			method, path string
			status       int
			used         int64
		}{
			{http.MethodGet, "/whole", 200, 700},
			{http.MethodGet, "/part", 206, 700},
			{http.MethodHead, "/whole", 200, 500},
			{http.MethodGet, "/unchanged", 304, 500},
			{http.MethodGet, "/nothing", 204, 500},
			{http.MethodGet, "/twice", 200, 500},
		} {
			response, client := ask(c.method, c.path)
			_, _ = io.Copy(io.Discard, response.Body)
			if response.StatusCode != c.status {
				t.Errorf("HTTP/%d %s %s: status %d, want %d", to.Major, c.method, c.path, response.StatusCode, c.status)
			}
			s.AwaitUsed(c.method+c.path, "tokens", client, c.used)
		}
	}
}
