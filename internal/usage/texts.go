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

// foundTexts are the texts of a request, by path.
type foundTexts struct {
	paths []string
	texts []string
	err   error // the first one
}

// Paths returns the paths.
func (t *Texts) Paths() []string { return t.paths }

// Read returns the text at each path of a request, which is empty if it is not there or null. The request must be one valid
// JSON text whose top is an object, or empty. It returns an error if upstreams may read something else: a name on a path is
// there twice or in another case, or has a zero byte or half a surrogate pair. So it does for a value that is an object, an
// array, a number that is not whole or above 2⁵³, or a text that is longer than MaxText or has such bytes.
func (t *Texts) Read(text []byte) ([]string, error) {
	f := &foundTexts{paths: t.paths, texts: make([]string, len(t.paths))}
	if len(text) == 0 {
		return f.texts, nil
	}
	if text[0] != '{' {
		return nil, errors.New("the body is not an object of JSON")
	}
	s := scanner{fields: &t.fields, request: true, texts: f}
	s.reset()
	s.write(text)
	if s.doubtful {
		return nil, errors.New("the body has a name twice, in another case, or with half a character")
	}
	return f.texts, f.err
}

// fail notes why the body cannot be read.
func (f *foundTexts) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// setNumber sets a number of a length, of which no more than the room was kept.
func (f *foundTexts) setNumber(path int, kept []byte, length int) {
	text, ok := wholeNumber(kept)
	if !ok || length > len(kept) {
		f.fail(fmt.Errorf("%s is not a whole number up to 2⁵³", f.paths[path]))
		return
	}
	f.texts[path] = text
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
		s.texts.texts[path] = string(s.name[:s.nameLen])
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
