package usage

// scanner finds the numbers of Fields in JSON texts, which may come in any pieces. It takes a text as
// valid: of one that is not, it finds what was read before the fault, or nothing. Several texts may follow
// each other, as in JSON Lines, and the elements of an array at the top count as such texts.
//
// It keeps where it is only as far as paths lead there. Everything else is skipped by counting brackets.
type scanner struct {
	fields *Fields
	values

	state  state
	level  int             // how many objects are open that paths lead into
	open   [MaxDepth]*node // the place of each of them
	here   *node           // the place of the value that comes or is being read; nil if no path leads there
	nested int             // how many brackets are open in a value that is skipped
	array  bool            // an array at the top is open
	objs   int64           // the objects at the top so far
	done   bool            // the last event was [DONE]

	name    [maxName + 1]byte // the name that is being read, without escapes
	nameLen int               // more than the room if it is longer
	hex     uint32            // of an escape
	hexLen  int
	high    rune // the first half of a surrogate pair; 0 if there is none

	number    [48]byte
	numberLen int // more than the room if it is longer
}

type state uint8

const (
	inValue     state = iota // before a value
	inObject                 // after {, before a name or }
	inName                   // in a name
	inEscape                 // after a backslash in a name
	inHex                    // in \u1234 in a name
	afterName                // before a colon
	afterValue               // before a comma or a closing bracket
	inNumber                 // in a number that counts
	inLiteral                // in a value without brackets that does not count
	inString                 // in a string that is a value
	afterEscape              // after a backslash in such a string
	inNested                 // in an object or array that no path leads into
	inNestedString
	afterNestedEscape
	lost // after a fault
)

// reset begins a new text.
func (s *scanner) reset() {
	s.state, s.level, s.nested, s.array, s.done, s.here = inValue, 0, 0, false, false, &s.fields.top
}

// isSpace has the bytes between tokens, and those of a byte order mark.
var isSpace = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, 0xef: true, 0xbb: true, 0xbf: true}

// Write reads the next piece.
func (s *scanner) write(p []byte) {
	for i := 0; i < len(p); {
		switch s.state {
		case inNested:
			i = s.skipNested(p, i)
		case inNestedString:
			i = s.skipString(p, i, inNested, afterNestedEscape)
		case inString:
			i = s.skipString(p, i, afterValue, afterEscape)
		case afterNestedEscape:
			s.state = inNestedString
			i++
		case afterEscape:
			s.state = inString
			i++
		case inName:
			i = s.readName(p, i)
		case lost:
			return
		case inNumber, inLiteral:
			i = s.readLiteral(p, i)
		case inObject:
			if p[i] == '"' {
				i = s.skipMembers(p, i+1)
				continue
			}
			fallthrough
		default:
			if !isSpace[p[i]] {
				s.token(p[i])
			}
			i++
		}
	}
}

// token takes a byte that is neither space nor in a string, number or name.
func (s *scanner) token(c byte) {
	switch s.state {
	case inValue:
		s.begin(c)
	case inObject:
		switch {
		case c == '"':
			s.beginName()
		case c == '}':
			s.close()
		case c != ',':
			s.state = lost
		}
	case inEscape, inHex:
		s.escape(c)
	case afterName:
		if s.state = inValue; c != ':' {
			s.state = lost
		}
	case afterValue:
		s.after(c)
	default:
		s.state = lost
	}
}

// begin begins a value.
func (s *scanner) begin(c byte) {
	counts := s.here != nil && s.here.term >= 0
	switch c {
	case '{':
		if s.level == 0 {
			s.objs++
		}
		s.record(counts)
		if s.here != nil && len(s.here.next) > 0 {
			s.open[s.level] = s.here
			s.level++
			s.state = inObject
			return
		}
		s.state, s.nested = inNested, 1
	case '[':
		if s.level == 0 && !s.array {
			s.array = true
			return
		}
		s.record(counts)
		s.state, s.nested = inNested, 1
	case ']': // of an empty array at the top
		s.after(c)
	case '"':
		s.record(counts)
		s.state = inString
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.state = inLiteral
		if counts {
			s.state, s.numberLen, s.number[0] = inNumber, 1, c
		}
	case 't', 'f':
		s.record(counts)
		s.state = inLiteral
	case 'n':
		s.state = inLiteral
	default:
		s.done = c == 'D' && s.array && s.level == 0
		s.state = lost
	}
}

// record records that the path that ends here has no valid number.
func (s *scanner) record(counts bool) {
	if counts {
		s.set(s.here.term, 0, errNumber)
	}
}

// readLiteral reads a number or a word up to its end.
func (s *scanner) readLiteral(p []byte, i int) int {
	for ; i < len(p); i++ {
		c := p[i]
		if c == ',' || c == '}' || c == ']' || isSpace[c] {
			s.endLiteral()
			return i
		}
		if s.state != inNumber {
			continue
		}
		if s.numberLen < len(s.number) {
			s.number[s.numberLen] = c
		}
		s.numberLen++
	}
	return i
}

// endLiteral ends a number or a word.
func (s *scanner) endLiteral() {
	if s.state == inNumber {
		n, err := decimal(0), errNumber
		if s.numberLen <= len(s.number) {
			n, err = parseDecimal(s.number[:s.numberLen])
		}
		s.set(s.here.term, n, err)
	}
	s.state = afterValue
}

// after takes the token after a value.
func (s *scanner) after(c byte) {
	switch {
	case s.level > 0 && c == ',':
		s.state = inObject
	case s.level > 0 && c == '}':
		s.close()
	case s.level > 0:
		s.state = lost
	case s.array && c == ',':
		s.state, s.here = inValue, &s.fields.top
	case s.array && c == ']':
		s.state, s.array = afterValue, false
	case s.array || c == ',' || c == '}' || c == ']':
		s.state = lost
	default: // another text
		s.here = &s.fields.top
		s.begin(c)
	}
}

// close closes an object that paths lead into.
func (s *scanner) close() {
	s.level--
	s.state = afterValue
}
