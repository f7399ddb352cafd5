package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	s := scanner{fields: &t.fields, strict: true}
	s.found = func(term int, token []byte) error {
		text, err := textOf(token)
		if before := found[term]; err == nil && before != "" && before != text {
			err = errors.New("is there under two names")
		}
		if err != nil {
			return fmt.Errorf("%s %w", t.paths[term], err)
		}
		found[term] = text
		return nil
	}
	if err := s.texts(bytes.NewReader(text)); err != io.EOF {
		return found, err
	}
	return found, nil
}

// textOf returns the text of a value that begins with a token, or says what it is.
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
