package logs

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
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
	kindTS           // kindEnd, as Caddy names it
	kindDate         // with clock: 2026-11-20, and 14:03:07 in UTC
	kindClock
	kindSeconds // durations
	kindMillis
	kindNanos
	kindDuration // in a unit that its size tells
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
	kindLogger
	kindLevel
	kindTLSVersion
	kindCipherSuite
	kindTLSProto
	kindServerName
	kindResumed
	kindHeader
	kindRespHeader
	kindHeaders // an object of headers
	kindRespHeaders
	kindObject // an object whose members are columns
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
	wanted [2]map[string]bool // the headers of requests and responses, nil for all

	// unit is that of durations that are whole numbers: seconds, until one is seen, because seconds always
	// have a fraction.
	unit string

	to               *Record
	start, end       time.Time
	day, clock       string
	host, path, args string // what the line has instead of a better one
	found, level, ts bool   // an object, and what all lines of Caddy have
}

func newBuilder(o Options) *builder {
	return &builder{unit: "s", wanted: [2]map[string]bool{wanted(o.Header), wanted(o.RespHeader)}}
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
	*b = builder{wanted: b.wanted, unit: b.unit, to: to}
}

// put stores a copy of a value. Values that are missing in the way of the format do not come here.
func (b *builder) put(c column, v string) {
	v = strings.Clone(v) // lines are long, and records may be kept
	switch to := b.to; c.kind {
	case kindStart:
		b.start = parseTime(v)
	case kindEnd:
		if t := parseTime(v); b.end.IsZero() || t.Nanosecond() > 0 { // the finer of two
			b.end = t
		}
	case kindTS:
		b.ts = true
		b.put(column{kind: kindEnd}, v)
	case kindDate:
		b.day = v
	case kindClock:
		b.clock = v
	case kindSeconds:
		to.Duration = parseDuration(v, "s")
	case kindMillis:
		to.Duration = parseDuration(v, "ms")
	case kindNanos:
		to.Duration = parseDuration(v, "ns")
	case kindDuration:
		to.Duration = parseDuration(v, b.unitOf(v))
	case kindClientIP:
		to.ClientIP = parseAddress(v)
	case kindRemoteIP:
		to.RemoteIP = parseAddress(v)
	case kindRequest:
		b.request(v)
	case kindMethod:
		to.Method = v
	case kindScheme:
		to.Scheme = scheme(v)
	case kindHost:
		to.Host = v
	case kindWeakHost:
		b.host = v
	case kindURI:
		to.URI = v
	case kindPath:
		b.path = v
	case kindQuery:
		b.args = v
	case kindProto:
		to.Proto = v
	case kindUser:
		to.User = v
	case kindStatus:
		if to.Status = int(number(v)); to.Status < 100 || to.Status > 999 {
			to.Status = 0
		}
	case kindSize:
		to.Size = number(v)
	case kindBytesRead:
		to.BytesRead = number(v)
	case kindLogger:
		to.Logger = v
	case kindLevel:
		b.level = true
	case kindHeader:
		to.Header = b.field(to.Header, 0, c.name, v)
	case kindRespHeader:
		to.RespHeader = b.field(to.RespHeader, 1, c.name, v)
	default:
		b.putTLS(c, v)
	}
}

// putTLS stores a value of the client's connection.
func (b *builder) putTLS(c column, v string) {
	switch to := &b.to.TLS; c.kind {
	case kindTLSVersion:
		to.Version = uint16(number(v))
	case kindCipherSuite:
		to.CipherSuite = uint16(number(v))
	case kindTLSProto:
		to.Proto = v
	case kindServerName:
		to.ServerName = v
	case kindResumed:
		to.Resumed = v == "true"
	}
}

// finish completes the record from what is spread over several values.
func (b *builder) finish() error {
	to := b.to
	if b.day != "" && b.clock != "" {
		b.end = parseTime(b.day + "T" + b.clock)
	}
	switch {
	case b.start.IsZero() && b.end.IsZero():
		return errNoTime
	case b.start.IsZero():
		b.start = b.end.Add(-to.Duration)
	case !b.end.IsZero() && to.Duration == 0:
		to.Duration = max(0, b.end.Sub(b.start))
	}
	to.Start = b.start
	if to.ClientIP = cmp.Or(to.ClientIP, to.RemoteIP); to.ClientIP == "" {
		return errNoAddress
	}
	if to.URI == "" && b.path != "" {
		if to.URI = b.path; b.args != "" {
			to.URI += "?" + strings.TrimPrefix(b.args, "?")
		}
	}
	if to.Method == "" || to.URI == "" {
		return errNoRequest // what came was no HTTP, or nothing came
	}
	to.Host = cmp.Or(to.Host, b.host)
	return nil
}

// request reads the first line of a request. Blanks belong to the URI.
func (b *builder) request(v string) {
	method, rest, ok := strings.Cut(v, " ")
	if !ok || !isToken(method) || strings.HasPrefix(rest, "HTTP/") {
		return
	}
	b.to.Method, b.to.URI = method, rest
	if i := strings.LastIndex(rest, " HTTP/"); i >= 0 && !strings.Contains(rest[i+1:], " ") {
		b.to.URI, b.to.Proto = rest[:i], rest[i+1:]
	}
}

// isToken reports whether the text can be a method.
func isToken(v string) bool {
	return v != "" && !strings.ContainsFunc(v, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// scheme knows what logs write for http and https.
func scheme(v string) string {
	switch strings.ToLower(v) {
	case "https", "wss", "h2", "grpcs", "on", "443":
		return "https"
	case "http", "ws", "off", "80":
		return "http"
	}
	return ""
}

// unitOf returns the unit of a duration in seconds with a fraction, as Go writes it, or as a whole number
// of milliseconds or nanoseconds, as Caddy's encoders are configured. Whole numbers are taken as
// milliseconds until one is 100,000 or more.
func (b *builder) unitOf(v string) string {
	n, err := strconv.Atoi(v)
	switch {
	case err != nil || n == 0:
		return "s"
	case n >= 100_000:
		b.unit = "ns"
	case b.unit == "s":
		b.unit = "ms"
	}
	return b.unit
}

// redacted is what Caddy and others log instead of credentials.
const redacted = "REDACTED"

// field appends a header to one of the two lists.
func (b *builder) field(to []Field, list int, name, v string) []Field {
	if w := b.wanted[list]; w != nil && !w[name] {
		return to
	}
	return append(to, Field{strings.Clone(name), strings.Clone(v), v == redacted})
}

// number reads a whole number. What is none is 0.
func number(v string) int64 {
	n, _ := strconv.ParseInt(v, 10, 64)
	return n
}

// parseAddress returns an address without its port, "" if it is none.
func parseAddress(v string) string {
	if rest, ok := strings.CutPrefix(v, "["); ok { // [2001:db8::1]:443
		v, _, _ = strings.Cut(rest, "]")
	} else if strings.Count(v, ":") == 1 {
		v, _, _ = strings.Cut(v, ":")
	}
	if _, err := netip.ParseAddr(v); err != nil {
		return ""
	}
	return v
}

// word returns the next word, which may be quoted, without its escapes, and what follows it.
func word(text string) (word, rest string, ok bool) {
	text = strings.TrimLeft(text, " ")
	quoted, ok := strings.CutPrefix(text, `"`)
	if !ok {
		word, rest, _ = strings.Cut(text, " ")
		return word, strings.TrimLeft(rest, " "), word != ""
	}
	end := find(quoted, `"`)
	if end < 0 {
		return "", "", false
	}
	return unescape(quoted[:end]), strings.TrimLeft(quoted[end+1:], " "), true
}

// find returns where the text behind a value begins, -1 if it is not there. A quote that the value has is
// escaped.
func find(line, text string) int {
	for from := 0; ; {
		at := strings.Index(line[from:], text)
		if at < 0 {
			return -1
		}
		at += from
		escapes := at - len(strings.TrimRight(line[:at], `\`))
		if escapes%2 == 0 || text[0] != '"' {
			return at
		}
		from = at + 1
	}
}

// unescape decodes what servers write with backslashes, such as \x22. What is not a known escape stays.
func unescape(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			if b.Len() == 0 {
				return text
			}
			return b.String() + text
		}
		b.WriteString(text[:i])
		r, multibyte, rest, err := strconv.UnquoteChar(text[i:], '"')
		if err != nil {
			r, multibyte, rest = '\\', false, text[i+1:]
		}
		if multibyte {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		text = rest
	}
}
