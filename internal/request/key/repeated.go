package key

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
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
	for in, namespace := range placeholder.Sent {
		if sent, ok := strings.CutPrefix(name, namespace); ok {
			if in == Header {
				sent = textproto.CanonicalMIMEHeaderKey(sent)
			}
			return Source{in, sent}, true
		}
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

// RepeatedError says that a request has different values where a key needs one. The upstream may use
// any of them, so a client could choose its key.
type RepeatedError struct{ Source }

func (e *RepeatedError) Error() string {
	return "the request has different values for " + e.Source.String()
}

// repeatable is a placeholder for which a request may have several values.
type repeatable struct {
	in, name string // its place: see [Source]
	err      *RepeatedError
}

// newRepeatable returns nil for a placeholder for which a request has at most one value.
func newRepeatable(named string) *repeatable {
	s, ok := SourceOf(named)
	if !ok {
		return nil
	}
	name := s.Name
	if s.In != Header {
		name = phpName(name)
	}
	return &repeatable{s.In, name, &RepeatedError{s}}
}

// each calls found with each value. It finds what any upstream might find: values with spaces
// around them, which HTTP/2 and HTTP/3 allow; parameters separated by semicolons; names of
// parameters and cookies in any case and as PHP changes them; and any number of values, where
// net/http gives up and finds none.
func (p *repeatable) each(r *http.Request, found func(string)) {
	switch p.in {
	case Header:
		for _, value := range r.Header[p.name] {
			found(p.clean(value))
		}
	case Query:
		for pair := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
			if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(phpName(unescape(name)), p.name) {
				found(unescape(value))
			}
		}
	case Cookie:
		for _, line := range r.Header["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(phpName(unescape(textproto.TrimString(name))), p.name) {
					found(p.clean(value))
				}
			}
		}
	}
}

// phpName returns the name of a parameter or a cookie as PHP reads it: up to a zero byte, without
// leading spaces, and with "_" for characters that the name of a variable cannot have.
func phpName(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return phpVariable.Replace(strings.TrimLeft(name, " "))
}

var phpVariable = strings.NewReplacer(" ", "_", ".", "_", "[", "_")

// maxRounds bounds how often quotes and escapes of a cookie are undone. Otherwise a client could nest
// so many of them that one request takes minutes.
const maxRounds = 8

// unescape unescapes a part of a query. It returns text that is not escaped correctly as it is.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// clean returns a value as upstreams read it: without spaces around it, and for a cookie without
// quotes and escapes. A value that is quoted or escaped more often than maxRounds is returned as it
// is. Cleaning a clean value changes nothing.
func (p *repeatable) clean(value string) string {
	switch p.in {
	case Header:
		return textproto.TrimString(value)
	case Cookie:
		plain := value
		for range maxRounds {
			before := plain
			plain = unquote(textproto.TrimString(plain))
			if text, err := url.PathUnescape(plain); err == nil {
				plain = text
			}
			if plain == before {
				return plain
			}
		}
	case Query: // already unescaped
	}
	return value
}

// unquote removes quotes around a value and the backslashes within them. A backslash is followed by
// a character, or by its three octal digits.
func unquote(value string) string {
	n := len(value)
	if n < 2 || value[0] != '"' || value[n-1] != '"' {
		return value
	}
	value = value[1 : n-1]
	if strings.IndexByte(value, '\\') < 0 {
		return value
	}
	plain := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '\\' && i+1 < len(value) {
			i++
			c = value[i]
			if i+2 < len(value) {
				if octal, err := strconv.ParseUint(value[i:i+3], 8, 8); err == nil {
					c = byte(octal)
					i += 2
				}
			}
		}
		plain = append(plain, c)
	}
	return string(plain)
}

// value returns the value for a key, which is empty if the request has none. Equal values count as
// one, because the key is the same whichever the upstream uses. Different values are an error, and the
// first one is returned.
func (p *repeatable) value(r *http.Request) (value string, err error) {
	first := true
	p.each(r, func(found string) {
		switch {
		case first:
			value, first = found, false
		case found != value:
			err = p.err
		}
	})
	return value, err
}
