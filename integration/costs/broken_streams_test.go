//go:build deep

package costs_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// frames is one request of HTTP/2 without TLS, written frame by frame, because no client breaks
// its own body.
type frames struct {
	t      *testing.T
	framer *http2.Framer
}

const streamID = 1

// startFrames sends the head of a POST.
func startFrames(t *testing.T, s *harness.Server, path string, fields ...string) *frames {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patient.Patience))
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	fields = append([]string{":method", "POST", ":scheme", "http", ":authority", "a", ":path", path}, fields...)
	for i := 0; i < len(fields); i += 2 {
		if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	c := &frames{t, http2.NewFramer(conn, conn)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.must(c.framer.WriteSettings())
	c.must(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: streamID, BlockFragment: head.Bytes(), EndHeaders: true}))
	return c
}

func (c *frames) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// send sends a part of the body.
func (c *frames) send(data string, last bool) {
	c.t.Helper()
	c.must(c.framer.WriteData(streamID, last, []byte(data)))
}

// reset breaks the request off with a RST_STREAM frame.
func (c *frames) reset() {
	c.t.Helper()
	c.must(c.framer.WriteRSTStream(streamID, http2.ErrCodeCancel))
}

// status waits for the answer.
func (c *frames) status() int {
	c.t.Helper()
	for {
		frame, err := c.framer.ReadFrame()
		c.must(err)
		if head, ok := frame.(*http2.MetaHeadersFrame); ok {
			status, err := strconv.Atoi(head.PseudoValue("status"))
			c.must(err)
			return status
		}
	}
}

// brokenStreams are ways to break the body of a request of HTTP/2. Where the upstream works, the
// request is broken after the upstream has read the credentials.
var brokenStreams = []struct {
	name, length string // length is that of the body, as the head says
	begins       string
	ends         bool // the stream ends with begins
	breaks       func(*frames)
	status       int // 0: there is no answer
}{
	{
		name: "10 bytes of 100", length: "100", begins: credentials[:10], ends: true,
		breaks: func(*frames) {}, status: http.StatusBadGateway,
	},
	{ // the proxy sends what it has read when its buffer is full
		name: "8 KB of 9 KB", length: "9216", begins: credentials + strings.Repeat(" ", 8192-len(credentials)),
		breaks: func(c *frames) { c.send("", true) }, status: http.StatusBadGateway,
	},
	{name: "reset, length unknown", begins: credentials, breaks: (*frames).reset},
	{
		name: "reset, length known", length: "9216", begins: credentials + strings.Repeat(" ", 8192-len(credentials)),
		breaks: (*frames).reset,
	},
}

// TestClientsThatBreakTheirStreamsPay is TestClientsThatBreakTheirBodiesPay for HTTP/2, where the
// length of a body is known from the head, or its end from a flag, and a request can be broken
// off while the connection stays.
func TestClientsThatBreakTheirStreamsPay(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		worked := make(chan struct{})
		b := harness.StartBackend(t, login(worked))
		s := harness.StartCaddy(t, bodySite(store), b.Variable())
		defer b.Open("never")
		for zone, z := range map[string]struct{ limit, costs int64 }{"status": {3, 1}, "cost": {15, 5}} {
			for _, c := range brokenStreams {
				t.Run(zone+", "+c.name, func(t *testing.T) {
					path := "/unlimited/" + zone
					request := func(attempt int) *frames {
						fields := []string{"x-client", c.name, "x-gate", "never", "x-attempt", fmt.Sprint(zone, ", ", c.name, " ", attempt)}
						if c.length != "" {
							fields = append(fields, "content-length", c.length)
						}
						r := startFrames(t, s, path, fields...)
						r.send(c.begins, c.ends)
						return r
					}
					for i := range int64(3) {
						r := request(int(i))
						if !c.ends {
							<-worked
						}
						c.breaks(r)
						if c.status != 0 {
							if got := r.status(); got != c.status {
								t.Errorf("attempt %d: status %d, want %d", i+1, got, c.status)
							}
						}
						patient.Until(t, "the request to be over", func() bool {
							return bytes.Contains(s.Log(), fmt.Appendf(nil, `"X-Attempt":["%s, %s %d"]`, zone, c.name, i))
						})
						awaitLeftAt(t, s, path, path, c.name, z.limit-(i+1)*z.costs)
					}
					if got := request(3).status(); got != http.StatusTooManyRequests {
						t.Errorf("beyond the limit: status %d", got)
					}
				})
			}
		}
	})
}
