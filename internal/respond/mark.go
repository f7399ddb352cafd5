package respond

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/body"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// marks says how a handler marks requests that pass above a limit.
type marks struct {
	any    bool     // a zone lets requests pass
	fields []string // the headers that say so, each once
}

func marksOf(zones []*zone.Zone) (m marks) {
	for _, z := range zones {
		m.any = m.any || z.PassesOver
		if z.OverHeader != "" && !slices.Contains(m.fields, z.OverHeader) {
			m.fields = append(m.fields, z.OverHeader)
		}
	}
	return m
}

// overMark is that a request is above the limit of a zone, and the header that says so.
type overMark struct{ zone, field string }

// Mark shows the handlers behind, and the upstream, above which limits a request passes. What a client has sent in the
// headers or trailers for that is removed, also if the request is refused. Begin calls it.
func (p *Responder) Mark(r *http.Request, v *limiter.Verdict) {
	if !p.marks.any {
		return
	}
	t, _ := v.Request.Vars[recordVar].(*record)
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Outcome == outcome.Over {
			t = p.recordOf(v)
			if m := (overMark{e.Zone.Name, e.Zone.OverHeader}); !slices.Contains(t.over, m) {
				t.over = append(t.over, m)
				slices.SortFunc(t.over, func(a, b overMark) int { return strings.Compare(a.zone, b.zone) })
			}
		}
	}
	for _, field := range p.marks.fields {
		removeHeader(r.Header, field)
		body.RemoveTrailers(r, func(name string) bool { return sameVariable(name, field) })
		if t == nil {
			continue
		}
		var names []string
		for _, m := range t.over { // also of handlers before this one
			if m.field == field {
				names = append(names, m.zone)
			}
		}
		if names != nil {
			r.Header[field] = names
		}
	}
}

// overNames are the names of the zones above whose limits the request passes, each once; nil without any.
func (t *record) overNames() (names []string) {
	for _, m := range t.over {
		if !slices.Contains(names, m.zone) {
			names = append(names, m.zone)
		}
	}
	return names
}

// removeHeader removes a header under all names that an upstream may read as this one. It also removes the name from
// the field Connection, because a proxy does not forward the headers that a client names there.
func removeHeader(h http.Header, name string) {
	for other := range h {
		if sameVariable(other, name) {
			delete(h, other)
		}
	}
	isName := func(token string) bool { return sameVariable(strings.TrimSpace(token), name) }
	for i, value := range h["Connection"] {
		if tokens := strings.Split(value, ","); slices.ContainsFunc(tokens, isName) {
			h["Connection"][i] = strings.Join(slices.DeleteFunc(tokens, isName), ",")
		}
	}
}

// sameVariable reports whether two names of headers can become the same variable of an upstream. CGI and what follows
// it (PHP, WSGI, Rack) use capital letters, and an underscore for each character that is no letter and no digit.
func sameVariable(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if variableByte(a[i]) != variableByte(b[i]) {
			return false
		}
	}
	return true
}

func variableByte(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return c - 'a' + 'A'
	case 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		return c
	}
	return '_'
}
