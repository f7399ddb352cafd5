// Package logs reads access logs: lines of any known format become records of requests.
package logs

import (
	"net/http"
	"slices"
	"time"
)

// Record is what a line of a log says about a request. What the line does not say is empty.
//
// Its strings are parts of the line. Clone one that is kept for long.
type Record struct {
	// Start is when the server began with the request. A log that has only the end gives the end
	// minus Duration.
	Start    time.Time
	Duration time.Duration // 0 if the log does not have it, never negative

	ClientIP string // the address of the client, without a port: always there
	RemoteIP string // the address of the connection, or Socket, if the log tells both apart
	Method   string
	Scheme   string // "http" or "https", if the log has it
	Host     string // with the port, if the client sent one
	URI      string // as the client sent it: path and query
	Proto    string // "HTTP/1.1", "HTTP/2.0"
	User     string // the authenticated user; "" also for "-"

	Status int // 0 if there was no response

	Header     http.Header // of the request; User-Agent and Referer too
	RespHeader http.Header
}

// Redacted is what Caddy and others log instead of credentials.
const Redacted = "REDACTED"

// Format says what the lines of a log tell that were read until now. The report lists what they do not.
type Format struct {
	Name string // as --format takes it

	Header, RespHeader Known // of requests and responses

	Host, Scheme, Duration bool

	// Fractions says that the log's clock has more than seconds.
	Fractions bool

	// Hashed and Cut say what a filter has made of the clients' addresses: hashes, or networks.
	Hashed, Cut bool
}

// Known are the names of headers that a format has, in canonical form. "*" is all of them.
type Known []string

// Has reports whether a format has a header.
func (k Known) Has(name string) bool {
	return slices.Contains(k, "*") || slices.Contains(k, http.CanonicalHeaderKey(name))
}

// mostNames bounds the names of headers that are remembered. Clients choose them.
const mostNames = 1000

// add adds a name in canonical form.
func (k *Known) add(name string) {
	if len(*k) < mostNames && !slices.Contains(*k, name) {
		*k = append(*k, name)
	}
}

// Options say how to read a log.
type Options struct {
	Format string // "auto" or "", or the name of a format

	// LogFormat has texts of nginx's log_format, for the format nginx. Lines may have any of them.
	LogFormat []string

	// Requests says that nobody needs the headers of responses, which take as long as those of requests.
	Requests bool
}
