package key

import (
	"net/textproto"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Source is a place in a request from which a client sends the value of a placeholder.
type Source struct{ In, Name string }

// The values of In.
const (
	Header = "header"
	Query  = "query"
	Cookie = "cookie"
)

// SourceOf returns the place of a placeholder; false if clients do not send its value as it is.
func SourceOf(name string) (s Source, ok bool) {
	if field, ok := strings.CutPrefix(name, placeholder.HeaderPrefix); ok {
		return Source{Header, textproto.CanonicalMIMEHeaderKey(field)}, true
	}
	if parameter, ok := strings.CutPrefix(name, placeholder.QueryPrefix); ok {
		return Source{Query, parameter}, true
	}
	if cookie, ok := strings.CutPrefix(name, placeholder.CookiePrefix); ok {
		return Source{Cookie, cookie}, true
	}
	return Source{}, false
}

// String returns the place in words, such as "header X-Api-Key".
func (s Source) String() string {
	if s.In == Query {
		return "query parameter " + s.Name
	}
	return s.In + " " + s.Name
}
