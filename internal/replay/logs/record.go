// Package logs reads access logs: lines of any known format become records of requests.
package logs

import (
	"net/http"
	"slices"
	"time"
)

// Record is what a line of a log says about a request. What the line does not say is empty.
//
// All strings of a record are its own, so they may be kept. The slices belong to the record, and are
// used again by the next call of [Reader.Next] with the same record.
type Record struct {
	// Start is when the server began with the request. A log that has only the end gives the end
	// minus Duration.
	Start    time.Time
	Duration time.Duration // 0 if the log does not have it, never negative

	ClientIP string // the address of the client, without a port: always there
	RemoteIP string // the address of the connection, if the log tells both apart
	Method   string
	Scheme   string // "http" or "https", if the log has it
	Host     string // with the port, if the client sent one
	URI      string // as the client sent it: path and query
	Proto    string // "HTTP/1.1", "HTTP/2.0"
	User     string // the authenticated user; "" also for "-"
	TLS      TLS

	Status    int // 0 if there was no response
	Size      int64
	BytesRead int64 // of the request's body, if the log has it; else -1

	Header     []Field // of the request; User-Agent and Referer too
	RespHeader []Field

	// Logger is the name of the logger that wrote the line, if the log has it.
	Logger string
}

// TLS is what a log says about the connection. Its zero value says nothing.
type TLS struct {
	Version     uint16
	CipherSuite uint16
	Proto       string // "h2"
	ServerName  string
	Resumed     bool
}

// Field is a value of a header. A field with several values comes several times.
type Field struct {
	Name     string // in the canonical form of [http.CanonicalHeaderKey]
	Value    string
	Redacted bool // the log has something else instead of the value
}

// Reset empties a record, and keeps the memory of its slices.
func (r *Record) Reset() {
	*r = Record{BytesRead: -1, Header: r.Header[:0], RespHeader: r.RespHeader[:0]}
}

// Get returns the first value of a header of the request. The name must be canonical.
func (r *Record) Get(name string) string {
	for _, f := range r.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Format says what lines of a log can tell. The report lists what they cannot.
type Format struct {
	Name string // as --format takes it

	// Header and RespHeader say which headers lines have: all that the client sent, or only
	// those of a list in canonical form.
	Header, RespHeader Known

	Host, Scheme, Duration, User bool

	// Step is the resolution of the log's clock: a second for the combined format.
	Step time.Duration
}

// Known are the headers that a format has.
type Known struct {
	All   bool
	Names []string // if not all
}

// Has reports whether a format has a header.
func (k Known) Has(name string) bool {
	return k.All || slices.Contains(k.Names, http.CanonicalHeaderKey(name))
}

// mostNames bounds the names of headers that are remembered. Clients choose them.
const mostNames = 1000

// add adds a name in canonical form.
func (k *Known) add(name string) {
	if len(k.Names) < mostNames && !slices.Contains(k.Names, name) {
		k.Names = append(k.Names, name)
	}
}

// Options say how to read a log.
type Options struct {
	Format    string // "auto" or "", or the name of a format
	LogFormat string // the text of nginx's log_format, for the format nginx

	// Header and RespHeader are the names of the fields that records get: nil for all that lines have.
	// What is not asked for costs no time.
	Header, RespHeader []string
}

// Bad is a line that was not understood.
type Bad struct {
	Log  string // the name that was given to [Open]
	Line int64  // from 1
	Text string // the beginning of the line, printable
	Why  string
}
