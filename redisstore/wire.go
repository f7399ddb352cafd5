package redisstore

// The script's arguments and reply are packed: Redis and this process both read fixed
// integers faster than text. take.lua describes the forms.
const (
	flagAllowed   = 1
	flagDamaged   = 2
	flagExempt    = 4
	flagBanned    = 8
	flagBanBegins = 16
	flagOwn       = 32

	allFlags = 63
)

// What the first byte of a call says: values are read together, the call is plain, and care
// is added to either.
const (
	modeMget  = 1
	modePlain = 2
	modeCare  = 4
)

// What a script is to do with a check.
const (
	opDecide = iota
	opRenew
	opCorrect
	opPeek
)

// maxWait is above every wait that a valid limit can lead to, in microseconds.
const maxWait = 1 << 50

// maxAhead is how far ahead of the clock a charge may be booked, in microseconds: as far
// as a clock is believed to have gone back.
const maxAhead = 24 * 60 * 60 * 1_000_000

// stateBytes is the size of a Counter's state.
const stateBytes = 24

// maxTime is above every time that a clock tells, in microseconds since 1970.
const maxTime = 1 << 53

// reader reads a reply.
type reader struct {
	rest  string
	short bool // there was less than was read
}

func (r *reader) byte() byte {
	if len(r.rest) < 1 {
		r.short = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uint16() uint16 { return uint16(r.byte())<<8 | uint16(r.byte()) }

// text reads some bytes.
func (r *reader) text(n int) string {
	if len(r.rest) < n {
		r.short = true
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// number reads a big-endian integer of eight bytes.
func (r *reader) number() int64 {
	if len(r.rest) < 8 {
		r.short = true
		return 0
	}
	s := r.rest[:8]
	r.rest = r.rest[8:]
	return int64(uint64(s[0])<<56 | uint64(s[1])<<48 | uint64(s[2])<<40 | uint64(s[3])<<32 |
		uint64(s[4])<<24 | uint64(s[5])<<16 | uint64(s[6])<<8 | uint64(s[7]))
}
