package zone

import (
	"errors"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/body"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// errSeveralKeys is why a request is refused whose calls belong to several limits.
var errSeveralKeys = errors.New("json_body: the calls of the body have different keys: send them one by one")

// meetCalls reports whether the body of a request has calls that the zone counts, and sets their key and how many there are. A
// request whose body cannot be read meets the zone, too.
func (z *Zone) meetCalls(c *Check, r *placeholder.Request) (met bool) {
	defer func() { r.Fields = nil }()
	calls, counts, refusal := z.JSONBody.Read(r.Request)
	if calls == nil {
		r.Fields = unreadable
		c.Calls, c.Unreadable = counts, refusal
		c.Key, c.Repeated = z.Template.Expand(r)
		return true
	}
	at := &call{Calls: calls}
	r.Fields = at
	for ; at.i < calls.Len(); at.i++ {
		if !z.JSONBody.Matches(calls, at.i) {
			continue
		}
		key, repeated := z.Template.Expand(r)
		if c.Calls++; c.Calls == 1 {
			c.Key, c.Repeated = key, repeated
		} else if key != c.Key {
			c.Unreadable = &body.Refusal{Status: http.StatusBadRequest, Err: errSeveralKeys}
			break
		}
	}
	return c.Calls > 0
}

// call is one of the calls in a body. It implements [placeholder.Fields].
type call struct {
	*usage.Calls
	i int
}

// Text implements [placeholder.Fields].
func (c *call) Text(path string) string { return c.Calls.Text(c.i, path) }

// standIn replaces each field of a body that is not known. It implements [placeholder.Fields].
type standIn string

// What replaces fields. A call with the text of one that cannot be read has the same key, which does it no good.
const (
	unreadable standIn = "(unreadable)"
	unread     standIn = "(not read)"
)

// Text implements [placeholder.Fields].
func (s standIn) Text(string) string { return string(s) }

// multiply makes the cost that of all calls.
func (c *Check) multiply() {
	if c.Cost > algorithms.MaxEvents/c.Calls {
		c.Cost = algorithms.MaxEvents
		return
	}
	c.Cost *= c.Calls
}
