package usage

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (s *scanner) beginName() {
	s.state, s.nameLen, s.high = inName, 0, 0
}

// readName reads a name up to its end or to an escape.
func (s *scanner) readName(p []byte, i int) int {
	start := i
	i = endOfRun(p, i)
	s.appendName(p[start:i])
	switch {
	case i == len(p):
		return i
	case p[i] == '\\':
		s.state = inEscape
	default:
		if s.high != 0 {
			s.appendHalf()
		}
		s.endName(s.name[:min(s.nameLen, len(s.name))])
	}
	return i + 1
}

func (s *scanner) appendName(part []byte) {
	if len(part) > 0 && s.high != 0 {
		s.appendHalf()
	}
	if s.nameLen < len(s.name) {
		copy(s.name[s.nameLen:], part)
		s.nameLen += len(part)
	}
}

func (s *scanner) appendRune(r rune) {
	s.high = 0
	var room [utf8.UTFMax]byte
	s.appendName(room[:utf8.EncodeRune(room[:], r)])
}

// appendHalf appends half a surrogate pair, as encoding/json does.
func (s *scanner) appendHalf() {
	s.appendRune(utf8.RuneError)
}

// escape takes a byte of an escape in a name.
func (s *scanner) escape(c byte) {
	if s.state == inEscape {
		s.state = inName
		switch at := strings.IndexByte(`"\/bfnrt`, c); {
		case c == 'u':
			s.state, s.hex, s.hexLen = inHex, 0, 0
		case at < 0:
			s.state = lost
		default:
			s.appendName([]byte{"\"\\/\b\f\n\r\t"[at]})
		}
		return
	}
	digit := strings.IndexByte("0123456789abcdef", c|0x20)
	if digit < 0 || c < '0' {
		s.state = lost
		return
	}
	s.hex = s.hex<<4 | uint32(digit)
	if s.hexLen++; s.hexLen < 4 {
		return
	}
	s.state = inName
	r := rune(s.hex)
	switch {
	case s.high != 0:
		if pair := utf16.DecodeRune(s.high, r); pair != utf8.RuneError {
			s.appendRune(pair)
			return
		}
		s.appendHalf()
		fallthrough
	default:
		if r >= 0xd800 && r < 0xdc00 {
			s.high = r
			return
		}
		s.appendRune(r)
	}
}

// endName finds the place that a name leads to. A name that was too long for the room is as long as the
// room, which is more than any name of a path.
func (s *scanner) endName(name []byte) {
	s.state, s.here = afterName, s.open[s.level-1].child(name)
}
