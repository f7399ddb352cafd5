package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// ParseTexts parses paths such as "params.name". Several with "|" between them are one text that clients name differently.
func ParseTexts(paths []string) (*Texts, error) {
	t := &Texts{fields: Fields{top: node{term: -1}}, paths: paths}
	if len(paths) > MaxTexts {
		return nil, fmt.Errorf("at most %d paths are read, got %d", MaxTexts, len(paths))
	}
	for _, path := range paths {
		if strings.Contains(path, "*") {
			return nil, fmt.Errorf("%q: a path of a text has no weight", path)
		}
		if err := t.fields.add(path); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Paths returns the paths.
func (t *Texts) Paths() []string { return t.paths }

// errDoubtful is the error of a text that upstreams may read differently.
var errDoubtful = errors.New("the body has a name twice, in another case, or with half a character")

// Read returns the text at each path of a request, which is empty if it is not there or null. The request must be one valid
// JSON text whose top is an object, or empty. It returns an error if upstreams may read something else: a name on a path is
// there twice or in another case, or has a zero byte or half a surrogate pair. So it does for a value that is an object, an
// array, a number that is not whole or above 2⁵³, or a text that is longer than MaxText or has such bytes.
func (t *Texts) Read(text []byte) ([]string, error) {
	found := make([]string, len(t.paths))
	if len(text) == 0 {
		return found, nil
	}
	if text[0] != '{' {
		return nil, errors.New("the body is not an object of JSON")
	}
	w := walk{text: text}
	return found, t.object(&w, &t.fields.top, found)
}

// object reads an object at a place that paths lead into.
func (t *Texts) object(w *walk, at *node, found []string) error {
	seen := make([]*node, 0, MaxTexts)
	for w.member() {
		name, odd := unquote(w.value())
		w.next() // the colon
		i := slices.IndexFunc(at.next, func(n *node) bool { return bytes.EqualFold([]byte(n.name), name) })
		switch {
		case odd:
			return errDoubtful
		case i < 0:
			w.value()
			continue
		case at.next[i].name != string(name) || slices.Contains(seen, at.next[i]):
			return errDoubtful
		}
		seen = append(seen, at.next[i])
		if err := t.read(w, at.next[i], found); err != nil {
			return err
		}
	}
	return nil
}

// read reads the value at a place of a path.
func (t *Texts) read(w *walk, at *node, found []string) error {
	if at.term < 0 {
		c := w.next()
		if w.at--; c == '{' {
			return t.object(w, at, found)
		}
		w.value()
		return nil
	}
	raw := w.value()
	if raw[0] == 'n' { // null
		return nil
	}
	text, err := textOf(raw)
	if before := found[at.term]; err == nil && before != "" && before != text {
		err = errors.New("is there under two names")
	}
	if err != nil {
		return fmt.Errorf("%s %w", t.paths[at.term], err)
	}
	found[at.term] = text
	return nil
}

// textOf returns the text of a value, or says what it is.
func textOf(raw []byte) (string, error) {
	switch raw[0] {
	case '{', '[':
		return "", errors.New("is no text")
	case 't', 'f':
		return string(raw), nil
	case '"':
		text, odd := unquote(raw)
		if odd || len(text) > MaxText {
			return "", fmt.Errorf("is longer than %d bytes, or has a zero byte or half a character", MaxText)
		}
		return string(text), nil
	}
	if text, ok := wholeNumber(raw); ok {
		return text, nil
	}
	return "", errors.New("is not a whole number up to 2⁵³")
}

// unquote returns the text of a string of JSON. It is odd if it has a zero byte or half a surrogate pair, which parsers read
// in several ways.
func unquote(raw []byte) (text []byte, odd bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], false
	}
	var plain string
	_ = json.Unmarshal(raw, &plain) // which is valid
	return []byte(plain), strings.ContainsAny(plain, "\x00\ufffd")
}

// walk walks over a valid JSON text.
type walk struct {
	text []byte
	at   int
}

// next returns the next byte that is no space, and goes behind it.
func (w *walk) next() byte {
	for strings.IndexByte(" \t\n\r", w.text[w.at]) >= 0 {
		w.at++
	}
	w.at++
	return w.text[w.at-1]
}

// member goes to the next member of an object, behind a bracket or a comma. It reports whether there is one.
func (w *walk) member() bool {
	c := w.next()
	if c == '{' {
		if c = w.next(); c != '}' {
			w.at--
		}
	}
	return c != '}'
}

// value returns the next value, and goes behind it.
func (w *walk) value() []byte {
	c := w.next()
	start := w.at - 1
	switch c {
	case '"':
		w.string()
	case '{', '[':
		for depth := 1; depth > 0; w.at++ {
			switch w.text[w.at] {
			case '"':
				w.at++
				w.string()
				w.at--
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
		}
	default:
		for w.at < len(w.text) && !bytes.ContainsRune([]byte(",}] \t\n\r"), rune(w.text[w.at])) {
			w.at++
		}
	}
	return w.text[start:w.at]
}

// string goes behind the end of a string that has begun.
func (w *walk) string() {
	for {
		w.at += bytes.IndexByte(w.text[w.at:], '"') + 1
		before := w.at - 2
		for w.text[before] == '\\' {
			before--
		}
		if (w.at-before)%2 == 0 { // an even number of backslashes is before the quote
			return
		}
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
