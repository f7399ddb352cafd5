package usage

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	// MaxText is the length of the longest text that is read at a path, in bytes.
	MaxText = 256

	// MaxTexts bounds the paths that are read as texts.
	MaxTexts = 8

	// MaxCalls bounds the objects of an array at the top.
	MaxCalls = 1000
)

// Texts are places in the JSON texts of requests whose values tell requests apart. They do not change, and many
// goroutines may use them.
type Texts struct {
	fields Fields
	paths  []string
}

// ParseTexts parses paths such as "params.name", without weights and alternatives.
func ParseTexts(paths []string) (*Texts, error) {
	t := &Texts{fields: Fields{top: node{term: -1}}, paths: paths}
	if len(paths) > MaxTexts {
		return nil, fmt.Errorf("at most %d paths are read, got %d", MaxTexts, len(paths))
	}
	for _, path := range paths {
		if strings.ContainsAny(path, "*|") {
			return nil, fmt.Errorf("%q: a path of a text has no weight and no alternatives", path)
		}
		if err := t.fields.add(path); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Calls are what a request asks for: one call, or those of an array. Each has a text for each path, which is empty
// if it is not there or null.
type Calls struct {
	paths []string
	texts []string // of all calls, one after the other
	err   error    // the first one
}

// Len returns how many calls there are, at least one.
func (c *Calls) Len() int { return len(c.texts) / len(c.paths) }

// Text returns the text of a call at a path; empty for a path that is not read.
func (c *Calls) Text(call int, path string) string {
	for i, p := range c.paths {
		if p == path {
			return c.texts[call*len(c.paths)+i]
		}
	}
	return ""
}

// Read reads the texts of a request. The text must be one valid JSON text, or empty. The top must be an object, or an array of
// at most MaxCalls objects. It returns an error if upstreams may read something else: a name on a path is there twice or in
// another case, or has a zero byte or half a surrogate pair. So it does for a value that is an object, an array, a number
// that is not whole or above 2⁵³, or a text that is longer than MaxText or has such bytes.
func (t *Texts) Read(text []byte) (*Calls, error) {
	c := &Calls{paths: t.paths}
	if len(text) > 0 {
		s := scanner{fields: &t.fields, request: true, texts: c}
		s.reset()
		s.write(text)
		switch {
		case s.doubtful:
			return nil, errors.New("the body has a name twice, in another case, or with half a character")
		case c.err != nil:
			return nil, c.err
		}
	}
	if len(c.texts) == 0 {
		c.begin()
	}
	return c, nil
}

// begin begins a call.
func (c *Calls) begin() {
	if len(c.texts) >= MaxCalls*len(c.paths) {
		c.fail(fmt.Errorf("the body has more than %d calls", MaxCalls))
		return
	}
	c.texts = append(c.texts, make([]string, len(c.paths))...)
}

// fail notes why the body cannot be read.
func (c *Calls) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// set sets the text of the last call at a path.
func (c *Calls) set(path int, text string) {
	if c.err == nil {
		c.texts[len(c.texts)-len(c.paths)+path] = text
	}
}

// setNumber sets a number of a length, of which no more than the room was kept.
func (c *Calls) setNumber(path int, kept []byte, length int) {
	text, ok := wholeNumber(kept)
	if !ok || length > len(kept) {
		c.fail(fmt.Errorf("%s is not a whole number up to 2⁵³", c.paths[path]))
		return
	}
	c.set(path, text)
}

// beginCall begins a value at the top. It returns false if that ends the reading.
func (s *scanner) beginCall(c byte) bool {
	switch {
	case c == '{':
		s.texts.begin()
		s.seen = [len(s.seen)]uint64{}
	case c == '[' && !s.array, c == ']':
	default:
		s.texts.fail(errors.New("the body is neither an object of JSON nor an array of such objects"))
	}
	if s.texts.err != nil {
		s.state = lost
	}
	return s.texts.err == nil
}

// endText ends a text that counts.
func (s *scanner) endText() {
	s.state = afterValue
	path := s.here.term
	switch {
	case s.nameLen > MaxText:
		s.texts.fail(fmt.Errorf("%s is longer than %d bytes", s.texts.paths[path], MaxText))
	case s.odd:
		s.texts.fail(fmt.Errorf("%s has a zero byte or half a character", s.texts.paths[path]))
	default:
		s.texts.set(path, string(s.name[:s.nameLen]))
	}
}

// maxWhole is the greatest whole number up to which all parsers read the same.
const maxWhole = 1 << 53

// wholeNumber returns a number of JSON in its shortest form, however it is written, if it is whole and not above
// maxWhole.
func wholeNumber(text []byte) (string, bool) {
	mantissa, exponent, hasExponent := text, 0, false
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.ParseInt(string(text[i+1:]), 10, 16)
		if err != nil {
			return "", false
		}
		mantissa, exponent, hasExponent = text[:i], int(e), true
	}
	mantissa, negative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, hasFraction := bytes.Cut(mantissa, []byte("."))
	digits := string(whole)
	if hasExponent || hasFraction {
		digits = strings.TrimLeft(digits+string(fraction), "0")
		exponent -= len(fraction)
		for exponent < 0 && strings.HasSuffix(digits, "0") {
			digits, exponent = digits[:len(digits)-1], exponent+1
		}
		const mostDigits = 16
		switch {
		case digits == "":
			exponent = 0
		case exponent < 0 || len(digits)+exponent > mostDigits:
			return "", false
		}
		digits += strings.Repeat("0", exponent)
	}
	n, err := strconv.ParseInt("0"+digits, 10, 64)
	if err != nil || n > maxWhole {
		return "", false
	}
	if negative {
		n = -n
	}
	return strconv.FormatInt(n, 10), true
}
