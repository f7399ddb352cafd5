package logs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// column says what a value in a line is. Formats are tables of columns: what differs is where the
// values stand.
type column struct {
	kind kind
	name string // of a header, in canonical form
}

type kind uint8

const (
	kindIgnored kind = iota
	kindStart        // when the request began
	kindEnd          // when the response was sent
	kindDate         // with clock: 2026-11-20, and 14:03:07 in UTC
	kindClock
	kindSeconds // durations
	kindMillis
	kindNanos
	kindClientIP // with or without a port
	kindRemoteIP
	kindRequest // GET /path HTTP/1.1
	kindMethod
	kindScheme
	kindHost
	kindWeakHost // if there is no other
	kindURI
	kindPath // with query
	kindQuery
	kindProto
	kindUser
	kindStatus
	kindSize
	kindBytesRead
	kindHeader
	kindRespHeader
	kindHeaders // an object of headers
	kindRespHeaders
)

var (
	// errNoRequest means that a line is understood, and is not about a request.
	errNoRequest = errors.New("not about a request")

	// errOther is errNoRequest for a line that may be of another format too.
	errOther = fmt.Errorf("another line: %w", errNoRequest)

	errNoAddress = errors.New("no client address")
	errNoTime    = errors.New("no time in a known format")
	errCut       = errors.New("the line is cut or malformed")
)

// builder makes a record of the values of a line, in any order.
type builder struct {
	*interner
	names  [2]map[string]string // of the headers of requests and responses, canonical; "" if unwanted
	wanted [2]map[string]bool

	to                *Record
	start, end, day   int64 // nanoseconds
	clock             int64
	hasStart, hasEnd  bool
	weak, path, query string
}

func newBuilder(o Options) *builder {
	return &builder{interner: newInterner(), names: [2]map[string]string{{}, {}}, wanted: [2]map[string]bool{wanted(o.Header), wanted(o.RespHeader)}}
}

// wanted returns the canonical names, nil for all.
func wanted(names []string) map[string]bool {
	if names == nil {
		return nil
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[http.CanonicalHeaderKey(name)] = true
	}
	return set
}

func (b *builder) begin(to *Record) {
	to.Reset()
	b.to, b.hasStart, b.hasEnd, b.day, b.clock = to, false, false, -1, -1
	b.weak, b.path, b.query = "", "", ""
}

// put stores a value. Values that are missing in the way of the format do not come here.
func (b *builder) put(c column, v []byte) {
	switch to := b.to; c.kind {
	case kindStart:
		b.start, b.hasStart = parseTime(v)
	case kindEnd:
		b.end, b.hasEnd = parseTime(v)
	case kindDate:
		b.day, _ = parseTime(append(append(make([]byte, 0, 20), v...), "T00:00:00"...))
	case kindClock:
		if len(v) >= len("00:00:00") {
			b.clock, _ = parseClock(v, 1970, 1, 1)
		}
	case kindSeconds:
		to.Duration = parseDuration(v, time.Second)
	case kindMillis:
		to.Duration = parseDuration(v, time.Millisecond)
	case kindNanos:
		to.Duration = parseDuration(v, time.Nanosecond)
	case kindClientIP:
		to.ClientIP = b.address(v)
	case kindRemoteIP:
		to.RemoteIP = b.address(v)
	case kindRequest:
		b.request(v)
	case kindMethod:
		to.Method = b.text(v)
	case kindScheme:
		to.Scheme = b.scheme(v)
	case kindHost:
		to.Host = b.text(v)
	case kindWeakHost:
		b.weak = b.text(v)
	case kindURI:
		to.URI = string(v)
	case kindPath:
		b.path = string(v)
	case kindQuery:
		b.query = string(v)
	case kindProto:
		to.Proto = b.text(v)
	case kindUser:
		to.User = b.text(v)
	case kindStatus:
		n, _ := parseDecimal(v, time.Nanosecond)
		if to.Status = int(n); n < 100 || n > 999 {
			to.Status = 0
		}
	case kindSize:
		to.Size, _ = parseDecimal(v, time.Nanosecond)
	case kindBytesRead:
		to.BytesRead, _ = parseDecimal(v, time.Nanosecond)
	case kindHeader:
		to.Header = b.field(to.Header, 0, c.name, v)
	case kindRespHeader:
		to.RespHeader = b.field(to.RespHeader, 1, c.name, v)
	}
}

// finish completes the record from what is spread over several values.
func (b *builder) finish() error {
	to := b.to
	if b.day >= 0 && b.clock >= 0 {
		b.end, b.hasEnd = b.day+b.clock, true
	}
	switch {
	case b.hasStart && b.hasEnd && to.Duration == 0:
		to.Duration = max(0, time.Duration(b.end-b.start))
	case b.hasEnd && !b.hasStart:
		b.start = b.end - int64(to.Duration)
	case !b.hasStart:
		return errNoTime
	}
	to.Start = time.Unix(0, b.start)
	if to.ClientIP = cmp.Or(to.ClientIP, to.RemoteIP); to.ClientIP == "" {
		return errNoAddress
	}
	if to.URI == "" && b.path != "" {
		if to.URI = b.path; b.query != "" {
			to.URI += "?" + strings.TrimPrefix(b.query, "?")
		}
	}
	if to.Method == "" || to.URI == "" {
		return errNoRequest // what came was no HTTP, or nothing came
	}
	to.Host = cmp.Or(to.Host, b.weak)
	return nil
}

// request reads the first line of a request. Blanks belong to the URI.
func (b *builder) request(v []byte) {
	method, rest, ok := bytes.Cut(v, []byte{' '})
	if !ok || !isToken(method) {
		return
	}
	uri, proto := rest, []byte(nil)
	if i := bytes.LastIndexByte(rest, ' '); i >= 0 && bytes.HasPrefix(rest[i+1:], []byte("HTTP/")) {
		uri, proto = rest[:i], rest[i+1:]
	} else if bytes.HasPrefix(rest, []byte("HTTP/")) {
		return
	}
	b.to.Method, b.to.URI, b.to.Proto = b.text(method), string(uri), b.text(proto)
}

// isToken reports whether the text can be a method.
func isToken(v []byte) bool {
	for _, c := range v {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), c) >= 0 {
			return false
		}
	}
	return len(v) > 0
}

// scheme knows what logs write for http and https.
func (b *builder) scheme(v []byte) string {
	switch strings.ToLower(b.text(v)) {
	case "https", "wss", "h2", "grpcs", "on", "443":
		return "https"
	case "http", "ws", "off", "80":
		return "http"
	}
	return ""
}

// redacted is what Caddy and others log in place of credentials.
const redacted = "REDACTED"

// field appends a header to one of the two lists.
func (b *builder) field(to []Field, list int, name string, v []byte) []Field {
	if w := b.wanted[list]; w != nil && !w[name] {
		return to
	}
	return append(to, Field{name, b.text(v), string(v) == redacted})
}

// mostNames bounds the names of headers that are remembered. Clients choose them.
const mostNames = 1000

// headerName returns the name of a field of one of the two lists in canonical form, "" if nobody wants it.
func (b *builder) headerName(list int, name []byte) string {
	if known, ok := b.names[list][string(name)]; ok {
		return known
	}
	canonical := http.CanonicalHeaderKey(string(name))
	if w := b.wanted[list]; w != nil && !w[canonical] {
		canonical = ""
	}
	if len(b.names[list]) < mostNames {
		b.names[list][string(name)] = canonical
	}
	return canonical
}

// parseDuration reads a number of units, or a duration as Go writes it. What is not understood or
// negative is 0.
func parseDuration(v []byte, unit time.Duration) time.Duration {
	n, ok := parseDecimal(v, unit)
	if !ok {
		d, err := time.ParseDuration(string(v))
		if err != nil {
			return 0
		}
		n = int64(d)
	}
	return max(0, time.Duration(n))
}
