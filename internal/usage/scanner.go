package usage

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// scanner finds the values of Fields in JSON texts, which may come in any pieces. It takes a text as
// valid: of one that is not, it finds what was read before the fault, or nothing. Several texts may follow
// each other, as in JSON Lines, and the elements of an array at the top count as such texts.
//
// It keeps where it is only as far as paths lead there. Everything else is skipped by counting brackets.
type scanner struct {
	fields *Fields
	tokens tokens
	found  func(term int, token []byte) error // gets each value of a term, or its beginning
	strict bool                               // a name on a path that upstreams may read differently is an error
	err    error                              // ends the text

	want   want
	level  int              // how many objects are open that paths lead into
	open   [MaxDepth]*node  // the place of each of them
	seen   [MaxDepth]uint32 // which of the names that lead on from there were there, if strict
	here   *node            // the place of the value that comes; nil if no path leads there
	nested int              // how many brackets are open in a value that is skipped
	array  bool             // an array at the top is open
	objs   int64            // the objects at the top so far
	done   bool             // the last event was [DONE]
}

// want is what may come next.
type want uint8

const (
	wantValue want = iota
	wantName
	wantColon
	wantEnd     // a comma or a closing bracket
	wantNothing // after a fault
)

// reset begins a new text.
func (s *scanner) reset() {
	s.tokens.length, s.tokens.odd = 0, false
	s.want, s.level, s.nested, s.array, s.done, s.here = wantValue, 0, 0, false, false, &s.fields.top
}

// write reads the next piece.
func (s *scanner) write(p []byte) {
	for len(p) > 0 && s.want != wantNothing {
		var token []byte
		if token, p = s.tokens.next(p); token != nil {
			s.take(token)
		}
	}
}

// take takes the next token.
func (s *scanner) take(token []byte) {
	c := token[0]
	switch {
	case s.nested > 0:
		switch c {
		case '{', '[':
			s.nested++
		case '}', ']':
			s.nested--
		}
	case s.want == wantName && c == '"':
		s.name(token)
	case s.want == wantColon && c == ':':
		s.want = wantValue
	case s.level > 0 && c == '}' && (s.want == wantName || s.want == wantEnd):
		s.level--
		s.want = wantEnd
	case s.level > 0 && c == ',' && s.want == wantEnd:
		s.want = wantName
	case s.level == 0 && s.array && c == ',' && s.want == wantEnd:
		s.want, s.here = wantValue, &s.fields.top
	case s.level == 0 && s.array && c == ']':
		s.array, s.want = false, wantEnd
	case s.want == wantValue:
		s.begin(token)
	case s.level == 0 && !s.array && s.want == wantEnd: // another text
		s.here = &s.fields.top
		s.begin(token)
	default:
		s.want = wantNothing
	}
}

// errDoubtful is the error of a text that upstreams may read differently.
var errDoubtful = errors.New("the body has a name twice, in another case, or with half a character")

// name takes the name of a member.
func (s *scanner) name(token []byte) {
	name, odd := unquote(token)
	at, seen := s.open[s.level-1], &s.seen[s.level-1]
	s.here, s.want = at.child(name), wantColon
	if !s.strict {
		return
	}
	i := slices.IndexFunc(at.next, func(n *node) bool { return bytes.EqualFold([]byte(n.name), name) })
	switch {
	case odd, i >= 0 && (at.next[i] != s.here || *seen&(1<<i) != 0):
		s.err, s.want = errDoubtful, wantNothing
	case i >= 0:
		*seen |= 1 << i
	}
}

// begin takes the first token of a value.
func (s *scanner) begin(token []byte) {
	c := token[0]
	switch {
	case c == '[' && s.level == 0 && !s.array:
		s.array, s.want = true, wantValue
		return
	case c == '{' && s.level == 0:
		s.objs++
	case c == '{' || c == '[':
	case strings.IndexByte("\"-0123456789tfn", c) < 0:
		s.done = s.array && s.level == 0 && string(token) == "DONE"
		s.want = wantNothing
		return
	}
	if c != 'n' && s.here != nil && s.here.term >= 0 { // null is no value
		if s.err = s.found(s.here.term, token); s.err != nil {
			s.want = wantNothing
			return
		}
	}
	s.want = wantEnd
	switch {
	case c == '{' && s.here != nil && len(s.here.next) > 0:
		s.open[s.level], s.seen[s.level] = s.here, 0
		s.level++
		s.want = wantName
	case c == '{' || c == '[':
		s.nested = 1
	}
}
