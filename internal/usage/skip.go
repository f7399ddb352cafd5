package usage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// skipMembers skips members of an object that do not count, from behind the quote of the first name. What may
// count, is cut off, has escapes in its name or is unusual is left to the states of the scanner. They read
// the same, but slower.
func (s *scanner) skipMembers(p []byte, i int) int {
	for {
		end := endOfRun(p, i)
		if end+2 >= len(p) || p[end] != '"' || p[end+1] != ':' {
			s.beginName()
			return i
		}
		s.endName(p[i:end])
		s.state = inValue
		if i = end + 2; p[i] == ' ' && i+1 < len(p) {
			i++
		}
		if s.here != nil {
			return i
		}
		switch p[i] {
		case '"':
			s.state = inString
			i = s.skipString(p, i+1, afterValue, afterEscape)
		case '{', '[':
			s.state, s.nested = inNested, 1
			i = s.skipNested(p, i+1)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
			s.state = inLiteral
			i = s.readLiteral(p, i+1)
		default:
			return i
		}
		if s.state != afterValue || i+2 >= len(p) || p[i] != ',' {
			return i
		}
		if i++; p[i] == ' ' {
			i++
		}
		if s.state = inObject; p[i] != '"' {
			return i
		}
		i++
	}
}

// skipNested skips brackets and what is between them, up to the closing one or a string that is cut off.
func (s *scanner) skipNested(p []byte, i int) int {
	for ; i < len(p); i++ {
		c := p[i]
		if !isStructure[c] {
			continue
		}
		switch c {
		case '"':
			s.state = inNestedString
			if i = s.skipString(p, i+1, inNested, afterNestedEscape) - 1; s.state != inNested {
				return len(p)
			}
		case '{', '[':
			s.nested++
		default:
			if s.nested--; s.nested == 0 {
				s.state = afterValue
				return i + 1
			}
		}
	}
	return i
}

// isStructure has the bytes that matter in a value that is skipped.
var isStructure = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skipString skips a string up to its end, or up to a backslash at the end of the piece.
func (s *scanner) skipString(p []byte, i int, end, escape state) int {
	if i = endOfWords(p, i, i+longRun); i < len(p) && p[i] == '"' {
		s.state = end
		return i + 1
	}
	quote := -1 // from where it was last looked for
	for i < len(p) {
		for n := min(i+shortRun, len(p)); i < n; i++ {
			switch p[i] {
			case '"':
				s.state = end
				return i + 1
			case '\\':
				i++
				n = min(i+shortRun, len(p))
			}
		}
		if i >= len(p) {
			break
		}
		to := nextOf(p, i, '"', &quote)
		if back := bytes.IndexByte(p[i:to], '\\'); back >= 0 {
			i += back
		} else {
			i = to
		}
	}
	if i > len(p) {
		s.state = escape
	}
	return len(p)
}

// endOfRun returns where the first quote or backslash is from i on, or the length.
func endOfRun(p []byte, i int) int {
	for i = endOfWords(p, i, len(p)); i < len(p) && p[i] != '"' && p[i] != '\\'; i++ {
	}
	return i
}

// endOfWords returns where the first quote or backslash is from i on. It looks at eight bytes at a
// time, up to most or as long as there are eight.
func endOfWords(p []byte, i, most int) int {
	for ; i < most && i+word <= len(p); i += word {
		if m := marks(binary.LittleEndian.Uint64(p[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	return i
}

const (
	// word is how many bytes are looked at together.
	word = 8

	// longRun is up to where a string is read by words, and shortRun up to where it is read by bytes if it has
	// escapes. Beyond, it is searched for its end, which takes longer to begin.
	longRun, shortRun = 2 * word, 16
)

// marks has the high bit of each byte that is a quote or a backslash. Of bytes above the first one, it may have
// more.
func marks(w uint64) uint64 {
	const low, high = 0x0101010101010101, 0x8080808080808080
	quotes, backslashes := w^'"'*low, w^'\\'*low
	return ((quotes-low)&^quotes | (backslashes-low)&^backslashes) & high
}
