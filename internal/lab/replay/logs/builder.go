package logs

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var (
	// errNoRequest means that a line is understood, and is not about a request.
	errNoRequest = errors.New("not about a request")

	// errOther is errNoRequest for a line that may be of another format too.
	errOther = fmt.Errorf("another line: %w", errNoRequest)

	errNoAddress = errors.New("no client address")
	errNoTime    = errors.New("no time in a known format")
	errTaken     = errors.New("a filter of the log may have taken it")
	errCut       = errors.New("the line is cut or malformed")
)

// builder makes a record of the values of a line, in any order.
type builder struct {
	requests    bool     // headers of responses are left out
	of          Format   // what the lines until now have
	met, zeros  [2]int64 // addresses of IPv4 and of IPv6, and those of them that end in zeros
	nanoseconds bool     // durations that are whole numbers have this unit

	entry
}

// entry is what a line says until its record is complete.
type entry struct {
	to               *Record
	start, end       time.Time
	day, clock       string
	host, path, args string // what the line has instead of a better one
	list             string // of addresses, instead of the client's
	object, tls      bool   // it has an object with a request, and one about TLS
	level            string // with ts, what all lines of Caddy have
	ts               bool
	logger           string // that wrote the line
}

func (b *builder) begin(to *Record) {
	*to = Record{}
	b.entry = entry{to: to}
}

func (b *builder) format() *Format { return &b.of }

// see notes that lines have a column, whatever its value.
func (b *builder) see(c column) {
	switch {
	case c.field == "":
	case c.response:
		b.of.RespHeader.add(c.field)
	default:
		b.of.Header.add(c.field)
	}
}

// add adds a header of the request or of the response.
func (b *builder) add(name, v string, response bool) {
	to := &b.to.Header
	if response {
		to = &b.to.RespHeader
	}
	if *to == nil {
		*to = make(http.Header)
	}
	(*to)[name] = append((*to)[name], v)
}

// finish completes the record from what is spread over several values.
func (b *builder) finish() error {
	to := b.to
	if b.day != "" && b.clock != "" {
		b.end, _ = parseTime(b.day + "T" + b.clock)
	}
	b.of.Fractions = b.of.Fractions || b.start.Nanosecond()+b.end.Nanosecond() > 0
	switch {
	case b.start.IsZero() && b.end.IsZero():
		return errNoTime
	case b.start.IsZero():
		b.start = b.end.Add(-to.Duration)
	case !b.end.IsZero() && to.Duration == 0:
		to.Duration = max(0, b.end.Sub(b.start))
	}
	to.Start = b.start
	err := b.client()
	if to.URI == "" && b.path != "" {
		if to.URI = b.path; b.args != "" {
			to.URI += "?" + strings.TrimPrefix(b.args, "?")
		}
	}
	switch {
	case to.Method == "" && to.URI == "":
		return errNoRequest // what came was no HTTP, or nothing came
	case strings.HasPrefix(to.User, "- "): // the host is an address, and is before that of the client
		return errCut
	case err != nil:
		return err
	case to.Method == "":
		return fmt.Errorf("no method: %w", errTaken)
	case to.URI == "":
		return fmt.Errorf("no URI: %w", errTaken)
	}
	if to.Status < 100 || to.Status > 999 {
		to.Status = 0
	}
	to.Host = cmp.Or(to.Host, b.host)
	b.of.Host, b.of.Scheme = b.of.Host || to.Host != "", b.of.Scheme || to.Scheme != ""
	b.of.Duration = b.of.Duration || to.Duration > 0
	return nil
}

// value returns nothing for the sign of a missing value.
func value(v string) string {
	if v == "-" {
		return ""
	}
	return v
}
