package protocol

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// MaxChanges is how many changes Redis keeps. If more come before a process looks again, it gives up all that it holds,
// which costs Redis much. Clients can cause changes: by bans that follow refusals.
const MaxChanges = 512

// changeSize is the length of a change: its number and its mark.
const changeSize = 16

// ChangeMark is a hash of a key and its zone, the same in every process. Another key may have the same one: then what is lent of
// that is given up, too.
func ChangeMark(zone, key string) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(zone)
	_, _ = h.Write([]byte{0})
	_, _ = h.WriteString(key)
	return h.Sum64()
}

// Changes tells a process which keys have other rules since it has looked last. The zero Changes has not looked yet.
type Changes struct {
	known  int64 // the number of the last change
	looked bool
}

// Forget has the next look be the first one.
func (c *Changes) Forget() { *c = Changes{} }

// Read reads the changes, as lua/change.lua writes them. It returns the marks of the new ones, and whether some may be
// missing, so that any key may have other rules.
func (c *Changes) Read(text string) (marks map[uint64]bool, all bool) {
	marks = make(map[uint64]bool)
	first, looked, known := int64(0), c.looked, c.known
	c.looked = true
	if len(text)%changeSize != 0 {
		return nil, true
	}
	for at := 0; at < len(text); at += changeSize {
		number := int64(binary.BigEndian.Uint64([]byte(text[at:])))
		if at == 0 {
			first, c.known = number, number
		}
		if looked && number == known {
			return marks, false
		}
		marks[binary.BigEndian.Uint64([]byte(text[at+8:]))] = true
		if at == (MaxChanges-1)*changeSize && !looked {
			// Nobody knows since when something is held, but not for long.
			return marks, first-number < changesUnseen
		}
	}
	if text == "" {
		c.known = 0
	}
	// What was seen last is gone: too many have come since, or the store has lost them.
	return marks, looked && known != 0 || len(text) >= MaxChanges*changeSize && looked
}

// changesUnseen is longer than something is held before a first look, in microseconds.
const changesUnseen = 10_000_000
