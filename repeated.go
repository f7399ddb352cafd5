package caddyratelimit

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// What repeated_values can be.
const (
	repeatedReject = "reject"
	repeatedJoin   = "join"
)

// repeatedError says that a request has several values where a key needs one. Which of
// them the upstream takes nobody knows here, so a client could choose its key.
type repeatedError struct{ placeholder string }

func (e *repeatedError) Error() string {
	return fmt.Sprintf("the request has several values for {%s}", e.placeholder)
}

// repeatable is where a request may have several values for one placeholder.
type repeatable struct {
	in   place
	name string
	err  *repeatedError
}

type place uint8

const (
	inHeader place = iota
	inQuery
	inCookies
)

// newRepeatable returns nil for a placeholder of which a request has one value at most.
func newRepeatable(placeholder string) *repeatable {
	for _, of := range []struct {
		prefix string
		in     place
	}{{headerPlaceholder, inHeader}, {queryPlaceholder, inQuery}, {cookiePlaceholder, inCookies}} {
		if name, ok := strings.CutPrefix(placeholder, of.prefix); ok {
			if of.in == inHeader {
				name = textproto.CanonicalMIMEHeaderKey(name)
			}
			return &repeatable{in: of.in, name: name, err: &repeatedError{placeholder}}
		}
	}
	return nil
}

// all are the values of a request that has several; value is what the placeholder has.
func (p *repeatable) all(r *http.Request, value string) []string {
	if p.in == inHeader && strings.IndexByte(value, ',') < 0 { // Caddy joins several with commas
		return nil
	}
	count := 0
	p.each(r, func(string) { count++ })
	if count < 2 {
		return nil
	}
	values := make([]string, 0, count)
	p.each(r, func(value string) { values = append(values, value) })
	return values
}

// each calls found with each value. It reads queries and cookies as the most generous
// upstream would: with semicolons between parameters too, and whatever the case of a
// cookie's name, which Caddy's placeholder ignores.
func (p *repeatable) each(r *http.Request, found func(string)) {
	switch p.in {
	case inHeader:
		for _, value := range r.Header[p.name] {
			found(value)
		}
	case inQuery:
		for pair := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
			if name, value, _ := strings.Cut(pair, "="); unescaped(name) == p.name {
				found(unescaped(value))
			}
		}
	case inCookies:
		for _, line := range r.Header["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(textproto.TrimString(name), p.name) {
					found(textproto.TrimString(value))
				}
			}
		}
	}
}

// unescaped is a part of a query. What is escaped wrongly stays as it is.
func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// one is the value for a key: that of the placeholder, or what becomes of several.
func (p *repeatable) one(r *http.Request, value string, join bool) (string, error) {
	switch values := p.all(r, value); {
	case values == nil:
		return value, nil
	case join:
		return strings.Join(values, ","), nil
	default:
		return values[0], p.err
	}
}

func (z *Zone) checkRepeatedValues() error {
	if z.RepeatedValues == "" {
		return nil
	}
	if err := oneOf("repeated_values", &z.RepeatedValues, repeatedReject, repeatedJoin); err != nil {
		return err
	}
	if !z.reads(func(p *keyPart) bool { return p.repeats != nil }) {
		return fmt.Errorf("repeated_values %s needs a key or plan with a placeholder of a header field, a query parameter or a cookie, got key %q",
			z.RepeatedValues, z.Key)
	}
	return nil
}
