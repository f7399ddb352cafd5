package logs

import (
	"bytes"
	"cmp"
	"errors"
	"time"
)

// caddy reads Caddy's JSON: access logs, and the requests in a log with other lines. Encoders of Caddy
// write times in several ways, and durations too.
type caddy struct {
	*builder
	s    scanner
	want [2]bool // the headers of requests and responses

	// unit is that of durations that are whole numbers: seconds, until one is seen, because seconds always
	// have a fraction.
	unit time.Duration

	lastTLS []byte // the last object about TLS, and what it says
	sameTLS TLS
}

func newCaddy(b *builder, o Options) (parser, error) {
	return &caddy{builder: b, unit: time.Second, want: [2]bool{o.Header == nil || len(o.Header) > 0, o.RespHeader == nil || len(o.RespHeader) > 0}}, nil
}

func (*caddy) format() Format {
	return Format{
		Name: "caddy", Header: Known{All: true}, RespHeader: Known{All: true},
		Host: true, Scheme: true, Duration: true, User: true, Step: time.Microsecond,
	}
}

func (c *caddy) parse(line []byte, to *Record) error {
	// In front of the object may stand what docker compose or journald adds, or the time and level of
	// Caddy's console encoder.
	object := bytes.IndexByte(line, '{')
	if object < 0 {
		return errCut
	}
	c.begin(to)
	s := &c.s
	s.start(line[object:])
	found, level, ts := false, false, false
	for ok := s.enter('{'); ok; ok = s.more('{') {
		switch string(s.key()) {
		case "ts":
			ts = true
			c.value(kindEnd)
		case "time", "timestamp", "@timestamp":
			c.value(kindEnd)
		case "level":
			level = true
			s.skip()
		case "logger":
			if v, _ := s.scalar(); !s.bad {
				to.Logger = c.text(v)
			}
		case "request":
			found = true
			c.request()
		case "bytes_read":
			c.value(kindBytesRead)
		case "user_id":
			c.value(kindUser)
		case "duration":
			c.duration()
		case "size":
			c.value(kindSize)
		case "status":
			c.value(kindStatus)
		case "resp_headers":
			to.RespHeader = c.fields(to.RespHeader[:0], 1)
		case "rate_limit":
			c.limited()
		default:
			s.skip()
		}
	}
	switch {
	case !s.whole():
		return errCut
	case !found && !(level && ts):
		return errors.New(`it has no object "request"`)
	case !found, to.Logger != "" && !bytes.HasPrefix([]byte(to.Logger), []byte("http.log.access")):
		return errNoRequest // other lines have requests too, such as those about errors
	case !c.hasEnd && object > 0:
		c.end, c.hasEnd = consoleTime(line[:object])
	}
	if err := c.finish(); err != nil {
		return err
	}
	to.Scheme = cmp.Or(to.Scheme, "http")
	return nil
}

// value stores a string, number or literal.
func (c *caddy) value(k kind) {
	if v, ok := c.s.scalar(); ok {
		c.put(column{kind: k}, v)
	}
}

func (c *caddy) request() {
	s, to := &c.s, c.to
	for ok := s.enter('{'); ok; ok = s.more('{') {
		switch string(s.key()) {
		case "remote_ip":
			c.value(kindRemoteIP)
		case "client_ip":
			c.value(kindClientIP)
		case "proto":
			c.value(kindProto)
		case "method":
			c.value(kindMethod)
		case "host":
			c.value(kindHost)
		case "uri":
			c.value(kindURI)
		case "headers":
			to.Header = c.fields(to.Header[:0], 0)
		case "tls":
			if s.peek() == '{' {
				to.Scheme = "https"
			}
			c.tlsOrSame()
		default:
			s.skip()
		}
	}
}

// fields reads an object whose members are strings or lists of strings.
func (c *caddy) fields(to []Field, list int) []Field {
	if !c.want[list] {
		c.s.skip()
		return to
	}
	return c.appendFields(&c.s, to, list)
}

// appendFields reads an object whose members are strings or lists of strings.
func (b *builder) appendFields(s *scanner, to []Field, list int) []Field {
	for ok := s.enter('{'); ok; ok = s.more('{') {
		name := b.headerName(list, s.key())
		if name == "" {
			s.skip()
			continue
		}
		isList := s.peek() == '['
		for ok := !isList || s.enter('['); ok; ok = isList && s.more('[') {
			if v, ok := s.scalar(); ok {
				to = append(to, Field{name, b.text(v), string(v) == redacted})
			}
		}
	}
	return to
}

// tlsOrSame reads an object about TLS. Most are the same as the one before.
func (c *caddy) tlsOrSame() {
	s := &c.s
	if len(c.lastTLS) > 0 && bytes.HasPrefix(s.text[s.at:], c.lastTLS) {
		s.at += len(c.lastTLS)
		c.to.TLS = c.sameTLS
		return
	}
	from := s.at
	c.to.TLS = TLS{}
	c.tls()
	if c.lastTLS = c.lastTLS[:0]; !s.bad && s.text[from] == '{' {
		c.lastTLS, c.sameTLS = append(c.lastTLS, s.text[from:s.at]...), c.to.TLS
	}
}

func (c *caddy) tls() {
	s, to := &c.s, &c.to.TLS
	for ok := s.enter('{'); ok; ok = s.more('{') {
		switch string(s.key()) {
		case "resumed":
			v, _ := s.scalar()
			to.Resumed = string(v) == "true"
		case "version":
			to.Version = uint16(c.number())
		case "cipher_suite":
			to.CipherSuite = uint16(c.number())
		case "proto":
			v, _ := s.scalar()
			to.Proto = c.text(v)
		case "server_name":
			v, _ := s.scalar()
			to.ServerName = c.text(v)
		default:
			s.skip()
		}
	}
}

func (c *caddy) limited() {
	s, to := &c.s, c.to
	if s.peek() == '{' {
		to.limited, to.Limited = Limited{}, &to.limited
	}
	for ok := s.enter('{'); ok; ok = s.more('{') {
		switch string(s.key()) {
		case "outcome":
			v, _ := s.scalar()
			to.limited.Outcome = c.text(v)
		case "zone":
			v, _ := s.scalar()
			to.limited.Zone = c.text(v)
		case "cost":
			to.limited.Cost = c.number()
		default:
			s.skip()
		}
	}
}

func (c *caddy) number() int64 {
	v, _ := c.s.scalar()
	n, _ := parseDecimal(v, time.Nanosecond)
	return n
}

// duration reads a duration in seconds with a fraction, as Go writes it, or as a whole number of
// milliseconds or nanoseconds, as encoders are configured. Whole numbers are taken as milliseconds until one is 100,000
// or more.
func (c *caddy) duration() {
	v, ok := c.s.scalar()
	if !ok {
		return
	}
	unit := time.Second
	if n, ok := digits(v); ok && n > 0 {
		switch {
		case n >= 100_000:
			c.unit = time.Nanosecond
		case c.unit == time.Second:
			c.unit = time.Millisecond
		}
		unit = c.unit
	}
	c.to.Duration = parseDuration(v, unit)
}

// consoleTime reads the time that Caddy's console encoder writes in front of a line.
func consoleTime(front []byte) (nanos int64, ok bool) {
	text, _, ok := bytes.Cut(bytes.TrimSpace(front), []byte{'\t'})
	if !ok {
		return 0, false
	}
	return parseTime(text)
}
