package logs

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner goes through one JSON text and decodes only what is asked for. It accepts all valid JSON, and
// some that is not valid in values that it skips. After something that it cannot read, bad is true, and
// it is at the end.
type scanner struct {
	text []byte
	at   int
	bad  bool

	// escape is where the first backslash is that is not before at, len(text) if there is none.
	escape  int
	escaped bool // the last string had one

	// unescaped holds the decoded strings that had escapes.
	unescaped []byte
}

// start begins with a text. Strings of the text before are no longer valid.
func (s *scanner) start(text []byte) {
	s.unescaped = s.unescaped[:0]
	s.turn(text)
}

// turn begins with another text, whose strings are valid as long as those of the text before.
func (s *scanner) turn(text []byte) {
	s.text, s.at, s.bad, s.escape = text, 0, false, -1
}

// escapeBefore reports whether there is a backslash between at and end.
func (s *scanner) escapeBefore(end int) bool {
	if s.escape < s.at {
		i := bytes.IndexByte(s.text[s.at:], '\\')
		if s.escape = s.at + i; i < 0 {
			s.escape = len(s.text)
		}
	}
	return s.escape < end
}

func (s *scanner) fail() {
	s.bad, s.at = true, len(s.text)
}

// peek passes white space and returns the byte after it, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// expect passes a byte that must come next.
func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.fail()
		return
	}
	s.at++
}

// enter passes the opening bracket of an object or array, and reports whether there is an element. If
// the value is something else, it skips the value.
func (s *scanner) enter(open byte) bool {
	if s.peek() != open {
		s.skip()
		return false
	}
	s.at++
	switch s.peek() {
	case open + 2: // "}" and "]" stand two places behind "{" and "["
		s.at++
		return false
	case 0:
		s.fail()
	}
	return !s.bad
}

// more skips what follows an element, and reports whether another one follows.
func (s *scanner) more(open byte) bool {
	switch s.peek() {
	case ',':
		s.at++
		return true
	case open + 2:
		s.at++
	default:
		s.fail()
	}
	return false
}

// key returns the name of a member and passes the colon behind it. Most names have no escape, and no
// white space around them.
func (s *scanner) key() []byte {
	if rest := s.text[s.at:]; len(rest) > 0 && rest[0] == '"' {
		end := bytes.IndexByte(rest[1:], '"') + 1
		if end > 0 && end+1 < len(rest) && rest[end+1] == ':' && !s.escapeBefore(s.at+end) {
			s.at += end + 2
			return rest[1:end]
		}
	}
	if s.peek() != '"' {
		s.fail()
		return nil
	}
	key := s.quoted()
	s.expect(':')
	return key
}

// quoted returns the string that begins here. It is valid until the next start.
func (s *scanner) quoted() []byte {
	from := s.at + 1
	s.skipQuoted()
	switch {
	case s.bad:
		return nil
	case s.escaped:
		return s.unescape(s.text[from : s.at-1])
	}
	return s.text[from : s.at-1]
}

// skipQuoted passes the string that begins here, and notes whether it has escapes.
func (s *scanner) skipQuoted() {
	s.escaped = false
	for i := s.at + 1; ; i++ {
		end := bytes.IndexByte(s.text[i:], '"')
		if end < 0 {
			s.fail()
			return
		}
		i += end
		if s.escapeBefore(i) {
			s.escaped = true
			escapes := 0
			for s.text[i-1-escapes] == '\\' {
				escapes++
			}
			if escapes%2 == 1 {
				continue
			}
		}
		s.at = i + 1
		return
	}
}

// scalar returns a string without its quotes, or the text of a number or of a literal; null is "". Other
// values are skipped, and ok is false.
func (s *scanner) scalar() (value []byte, ok bool) {
	switch s.peek() {
	case '"':
		value = s.quoted()
		return value, !s.bad
	case '{', '[':
		s.skip()
		return nil, false
	}
	from := s.at
	for s.at < len(s.text) && !ends[s.text[s.at]] {
		s.at++
	}
	if value = s.text[from:s.at]; len(value) == 0 {
		s.fail()
	} else if value[0] == 'n' {
		value = nil
	}
	return value, !s.bad
}

// skip passes any value.
func (s *scanner) skip() {
	switch s.peek() {
	case '"':
		s.skipQuoted()
	case '[':
		if from := s.at; from+1 < len(s.text) && s.text[from+1] == '"' { // most lists have one string
			s.at++
			if s.skipQuoted(); s.at < len(s.text) && s.text[s.at] == ']' {
				s.at++
				return
			} else if !s.bad {
				s.at = from
			}
		}
		s.skipNested()
	case '{':
		s.skipNested()
	case '}', ']', ',', ':', 0:
		s.fail()
	default:
		for s.at < len(s.text) && !ends[s.text[s.at]] {
			s.at++
		}
	}
}

// skipNested passes an object or array.
func (s *scanner) skipNested() {
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			s.skipQuoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.at++; depth == 0 {
			return
		}
	}
	s.fail()
}

// ends has the bytes that end a number or a literal.
var ends = func() (set [256]bool) {
	for _, c := range []byte(",:}]{[\" \t\r\n") {
		set[c] = true
	}
	return set
}()

// whole reports whether nothing but white space is left.
func (s *scanner) whole() bool {
	return s.peek() == 0 && s.at == len(s.text) && !s.bad
}

// unescape decodes what JSON writes with backslashes, and \x22 as nginx writes it. What is not a known
// escape stays.
func (s *scanner) unescape(text []byte) []byte {
	from := len(s.unescaped)
	to := s.unescaped
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			to = append(to, text...)
			break
		}
		to = append(to, text[:i]...)
		to, text = appendEscape(to, text[i+1:])
	}
	s.unescaped = to
	return to[from:]
}

// appendEscape appends what an escape means. The text begins behind the backslash.
func appendEscape(to, text []byte) (result, rest []byte) {
	c, rest := text[0], text[1:]
	switch c {
	case '"', '\\', '/', '\'':
		return append(to, c), rest
	case 'b':
		return append(to, '\b'), rest
	case 'f':
		return append(to, '\f'), rest
	case 'n':
		return append(to, '\n'), rest
	case 'r':
		return append(to, '\r'), rest
	case 't':
		return append(to, '\t'), rest
	case 'v':
		return append(to, '\v'), rest
	case 'x':
		if n, ok := hex(rest, 2); ok {
			return append(to, byte(n)), rest[2:]
		}
	case 'u':
		if n, ok := hex(rest, 4); ok {
			rest = rest[4:]
			r := n
			if utf16.IsSurrogate(n) {
				r = utf8.RuneError
				if len(rest) > 1 && rest[0] == '\\' && rest[1] == 'u' {
					if low, ok := hex(rest[2:], 4); ok {
						if r = utf16.DecodeRune(n, low); r != utf8.RuneError {
							rest = rest[6:]
						}
					}
				}
			}
			return utf8.AppendRune(to, r), rest
		}
	}
	return append(to, '\\', c), rest
}

// hex reads a number of so many hexadecimal digits.
func hex(text []byte, digits int) (n rune, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	for _, c := range text[:digits] {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
