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
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_, _ = d.Token() // the bracket
	return found, t.object(d, &t.fields.top, found)
}

// object reads the rest of an object at a place that paths lead into.
func (t *Texts) object(d *json.Decoder, at *node, found []string) error {
	seen := make(map[*node]bool, len(at.next))
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if isOdd(name) {
			return errDoubtful
		}
		i := slices.IndexFunc(at.next, func(n *node) bool { return strings.EqualFold(n.name, name) })
		if i < 0 {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if to := at.next[i]; to.name != name || seen[to] {
			return errDoubtful
		}
		seen[at.next[i]] = true
		if err := t.value(d, at.next[i], found); err != nil {
			return err
		}
	}
	_, err := d.Token() // the bracket
	return err
}

// value reads the value at a place of a path.
func (t *Texts) value(d *json.Decoder, at *node, found []string) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if len(at.next) > 0 && raw[0] == '{' {
		inner := json.NewDecoder(bytes.NewReader(raw))
		inner.UseNumber()
		_, _ = inner.Token()
		if err := t.object(inner, at, found); err != nil {
			return err
		}
	}
	if at.term < 0 || raw[0] == 'n' {
		return nil
	}
	path := t.paths[at.term]
	text := string(raw)
	switch raw[0] {
	case '{', '[':
		return fmt.Errorf("%s is no text", path)
	case 't', 'f':
	case '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		if len(text) > MaxText {
			return fmt.Errorf("%s is longer than %d bytes", path, MaxText)
		}
		if isOdd(text) {
			return fmt.Errorf("%s has a zero byte or half a character", path)
		}
	default:
		whole, ok := wholeNumber(raw)
		if !ok {
			return fmt.Errorf("%s is not a whole number up to 2⁵³", path)
		}
		text = whole
	}
	if before := found[at.term]; before != "" && before != text {
		return fmt.Errorf("%s is there under two names", path)
	}
	found[at.term] = text
	return nil
}

// isOdd reports whether a text has a zero byte or half a surrogate pair, which parsers read in several ways.
func isOdd(text string) bool { return strings.ContainsAny(text, "\x00\ufffd") }

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
