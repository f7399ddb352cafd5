package world

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// askedField is the field of bodies that say what a request costs.
const askedField = "tokens"

// body is what a request has for a body: a number of tokens, if a zone looks there.
func (p *Plan) body(e *Event) string {
	if !p.asks() {
		return ""
	}
	text := fmt.Sprintf(`{"model": "m", %q: %d}`, askedField, e.Cost)
	if e.Sort == garbled {
		return text[:len(text)-1]
	}
	return text
}

// sent is the body of a request as it comes to an instance: in two pieces, the second one some time later.
func (w *world) sent(in *instance, e *Event) io.Reader {
	text := w.plan.body(e)
	if text == "" {
		return nil
	}
	half := len(text) / 2
	late := between(w.net.draw("body", in.number, int(e.At)), 0, 20*time.Millisecond)
	return io.MultiReader(strings.NewReader(text[:half]), &pause{late}, strings.NewReader(text[half:]))
}

// pause is what comes of a body while nothing does.
type pause struct{ lasts time.Duration }

// Read implements [io.Reader].
func (p *pause) Read([]byte) (int, error) {
	time.Sleep(p.lasts)
	return 0, io.EOF
}

// asked returns what a request costs in a zone by its body, and whether the zone decides about it.
func (z *Zone) asked(e *Event) (cost int64, decides bool) {
	return max(1, e.Cost), e.Sort != garbled
}
