package usage

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxToken is how much of a token is kept that is cut off: more than a name of a path can have, of which an escape
// makes six bytes of one, and more than a number that counts.
const maxToken = 6*maxName + 3

// tokens cuts JSON texts, which may come in any pieces, into their tokens.
type tokens struct {
	kept   [maxToken]byte // the beginning of a token that is cut off
	length int            // of that token so far, which may be more; 0 if there is none
	odd    bool           // what has come of that string ends with an odd number of backslashes
}

// isSpace has the bytes between tokens, and isPunctuation the tokens of one byte.
var (
	isSpace       = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}
	isPunctuation = [256]bool{'{': true, '}': true, '[': true, ']': true, ',': true, ':': true}
)

// next returns the next token, and what comes behind it. The token is nil if it has not ended yet. Of one that was cut
// off and is longer than maxToken, it returns the beginning.
func (t *tokens) next(p []byte) (token, rest []byte) {
	if t.length == 0 {
		for len(p) > 0 && isSpace[p[0]] {
			p = p[1:]
		}
		if len(p) == 0 {
			return nil, nil
		}
		if isPunctuation[p[0]] {
			return p[:1], p[1:]
		}
	}
	end, ended := t.end(p)
	if ended && t.length == 0 {
		return p[:end], p[end:]
	}
	copy(t.kept[min(t.length, maxToken):], p[:end])
	t.length += end
	if !ended {
		return nil, nil
	}
	token = t.kept[:min(t.length, maxToken)]
	t.length = 0
	return token, p[end:]
}

// end returns where the token ends that p begins or goes on with, or the length of p.
func (t *tokens) end(p []byte) (end int, ended bool) {
	switch {
	case t.length > 0 && t.kept[0] == '"':
		return t.endOfString(p, 0)
	case t.length == 0 && p[0] == '"':
		return t.endOfString(p, 1)
	}
	for i, c := range p {
		if c == '"' || isSpace[c] || isPunctuation[c] {
			return i, true
		}
	}
	return len(p), false
}

// endOfString looks from i on for the quote that ends a string: one behind an even number of backslashes.
func (t *tokens) endOfString(p []byte, i int) (end int, ended bool) {
	for {
		quote := bytes.IndexByte(p[i:], '"')
		part := p[i:]
		if quote >= 0 {
			part = part[:quote]
		}
		before := len(part)
		for before > 0 && part[before-1] == '\\' {
			before--
		}
		backslashes := len(part) - before
		if before == 0 && t.odd {
			backslashes++
		}
		if t.odd = backslashes%2 == 1; quote < 0 {
			return len(p), false
		}
		i += quote + 1
		if !t.odd {
			return i, true
		}
		t.odd = false // the backslash belongs to the quote
	}
}

// unquote returns the text of a string of JSON. It is odd if it has a zero byte or half a surrogate pair, which parsers
// read in several ways.
func unquote(raw []byte) (text []byte, odd bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], false
	}
	var plain string
	if json.Unmarshal(bytes.Clone(raw), &plain) != nil {
		return nil, true
	}
	return []byte(plain), strings.ContainsAny(plain, "\x00\ufffd")
}
