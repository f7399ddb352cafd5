package usage

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxFolded is the length of the longest name that matches one of a path whatever the case: some letters
// of one byte have another case of three.
const maxFolded = 3 * maxName

func (s *scanner) beginName() {
	s.state, s.nameLen, s.high, s.odd, s.inText = inName, 0, 0, false, false
}

// readName reads a name, or a text that counts, up to its end or to an escape.
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
		if s.inText {
			s.endText()
			return i + 1
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
	s.odd = true
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
		s.odd = s.odd || r == 0 || utf16.IsSurrogate(r)
		s.appendRune(r)
	}
}

// endName finds the place that a name leads to. A name that was too long for the room is as long as the
// room, which is more than any name of a path.
func (s *scanner) endName(name []byte) {
	s.state, s.here = afterName, s.open[s.level-1].child(name)
	if s.request {
		s.doubt(name)
	}
	s.odd = false
}

// doubt finds the place that some upstreams take a name of a request for, whatever its case. It notes names
// that are there twice or in another case.
func (s *scanner) doubt(name []byte) {
	s.doubtful = s.doubtful || s.odd && s.texts != nil
	if s.here == nil && len(name) <= maxFolded {
		for _, next := range s.open[s.level-1].next {
			if strings.EqualFold(string(name), next.name) {
				s.here = next
			}
		}
	}
	if s.here == nil {
		return
	}
	word, bit := &s.seen[s.here.id/64], uint64(1)<<(s.here.id%64)
	s.doubtful = s.doubtful || *word&bit != 0 || string(name) != s.here.name
	*word |= bit
}
