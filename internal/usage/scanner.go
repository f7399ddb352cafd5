package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// scanner finds the values of Fields in JSON texts. It takes a text as valid: of one that is not, it finds what was read
// before the fault, or nothing. It keeps one token at a time, and only the beginning of a long one, so that a text
// takes no memory, however large it is. That is what encoding/json cannot do.
type scanner struct {
	fields *Fields
	found  func(term int, token []byte) error // gets each value of a term, or its beginning
	strict bool                               // a name on a path that upstreams may read differently is an error

	from io.ByteReader
	err  error          // has ended the text
	next byte           // what comes next, if it was read with the token before; or else 0
	kept [maxToken]byte // the token
	objs int64          // the objects at the top so far
	done bool           // the last thing at the top was [DONE]
}

// maxToken is how much of a token is kept: more than a name of a path or a text can have, of which an escape makes six
// bytes of one, and more than a number that counts.
const maxToken = 6*MaxText + 3

var (
	// errFault is the error of what is no JSON.
	errFault = errors.New("the body is no JSON")

	// errDoubtful is the error of a text that upstreams may read differently.
	errDoubtful = errors.New("the body has a name twice, in another case, with half a character, or long and with escapes")
)

// texts reads texts that follow each other, as in JSON Lines, up to an error, which is [io.EOF] at their end. The elements
// of an array at the top count as such texts.
func (s *scanner) texts(from io.ByteReader) error {
	s.from, s.next, s.err = from, 0, nil
	for array := false; ; {
		token := s.token()
		if s.err != nil {
			return s.err
		}
		s.done = array && string(token) == "DONE" // of [DONE], which is no JSON, so nothing is read behind it
		switch c := token[0]; {
		case c == '[' && !array:
			array = true
		case c == ']' && array:
			array = false
		case c == ',' && array:
		default:
			if c == '{' {
				s.objs++
			}
			s.value(token, &s.fields.top)
		}
	}
}

// value reads the value that begins with a token. It is at a place that paths lead to, or at none if that is nil.
func (s *scanner) value(token []byte, at *node) {
	c := token[0]
	if strings.IndexByte("{[\"-0123456789tfn", c) < 0 {
		s.fail(errFault)
		return
	}
	if at != nil && at.term >= 0 && c != 'n' { // null is no value
		s.fail(s.found(at.term, token))
	}
	switch {
	case c == '{' && at != nil && len(at.next) > 0:
		s.object(at)
	case c == '{' || c == '[':
		s.skip()
	}
}

// skip reads the rest of an object or an array that no path leads into.
func (s *scanner) skip() {
	for open := 1; open > 0 && s.err == nil; {
		switch s.token()[0] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
	}
}

// object reads the members of an object that paths lead into.
func (s *scanner) object(at *node) {
	var seen uint32 // which of the names on paths were there
	for s.err == nil {
		name := s.token()
		switch name[0] {
		case '}':
			return
		case ',':
			continue
		case '"':
		default:
			s.fail(errFault)
			return
		}
		member := s.member(name, at, &seen)
		if s.token()[0] != ':' {
			s.fail(errFault)
			return
		}
		s.value(s.token(), member)
	}
}

// member returns the place of a member with this name; nil if no path leads there.
func (s *scanner) member(token []byte, of *node, seen *uint32) *node {
	name, odd := unquote(token)
	at := of.child(name)
	i := slices.IndexFunc(of.next, func(n *node) bool { return bytes.EqualFold([]byte(n.name), name) })
	if s.strict && (odd || i >= 0 && (of.next[i] != at || *seen&(1<<i) != 0)) {
		s.fail(errDoubtful)
	}
	if i >= 0 {
		*seen |= 1 << i
	}
	return at
}

// fail ends the text with an error, unless one has ended it before.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// ends has the bytes that end a number or a word: space, punctuation, and the quote that begins a string.
var ends = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, '{': true, '}': true, '[': true, ']': true, ',': true, ':': true, '"': true}

// token returns the next token, or the beginning of one that is longer than maxToken. It is valid until the next one. After
// an error it is a byte that begins none.
func (s *scanner) token() []byte {
	c := s.next
	for s.next = 0; s.err == nil && (c == 0 || c <= ' ' && ends[c]); {
		c = s.read()
	}
	text, escaped := c == '"', false
	if s.kept[0] = c; !text && ends[c] {
		return s.kept[:1]
	}
	for n := 1; s.err == nil; {
		if c = s.read(); !text && ends[c] {
			s.next = c
			return s.kept[:n]
		}
		if n < maxToken {
			s.kept[n] = c
			n++
		}
		if text && c == '"' && !escaped {
			return s.kept[:n]
		}
		escaped = text && c == '\\' && !escaped
	}
	s.kept[0] = 0
	return s.kept[:1]
}

// read reads the next byte, which is 0 after an error.
func (s *scanner) read() byte {
	c, err := s.from.ReadByte()
	s.fail(err)
	return c
}

// unquote returns the text of a string of JSON. It is odd if it has a zero byte or half a surrogate pair, which parsers
// read in several ways, or may have them behind what is kept of it. The beginning of another long string is a text that no
// path has.
func unquote(raw []byte) (text []byte, odd bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], false
	}
	var plain string
	if json.Unmarshal(raw, &plain) != nil {
		return nil, true
	}
	return []byte(plain), strings.ContainsAny(plain, "\x00\ufffd")
}
