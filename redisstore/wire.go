package redisstore

import (
	"encoding/binary"
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The script's arguments and reply are packed: Redis and this process both read fixed
// integers faster than text. take.lua describes the forms.
const (
	replySize = 1 + 6*8

	flagAllowed = 1
	flagDamaged = 2
)

// What a script is to do with a check.
const (
	opDecide = iota
	opRenew
	opGiveBack
)

// argument is a check as the script reads it.
func (s *Store) argument(c *store.Check, op byte, hold string) string {
	now := int64(0)
	if c.Rule.Dated() {
		now = s.today()
	}
	wire, name := c.Rule.At(now).Wire, c.Rule.Algorithm().Name()
	b := make([]byte, 0, len(wire)+8+len(name)+2+len(hold))
	b = append(b, wire...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Cost))
	b = append(b, name...)
	b = append(b, 0, op)
	b = append(b, hold...)
	return string(b)
}

// decode reads the script's reply, and believes nothing that cannot be. It returns the
// index of a check whose stored state was damaged, or -1.
func decode(reply string, decisions []algorithms.Decision) (damaged int, err error) {
	damaged = -1
	if len(reply) != 8+replySize*len(decisions) {
		return damaged, fmt.Errorf("redis answered %d bytes to %d checks, expected %d",
			len(reply), len(decisions), 8+replySize*len(decisions))
	}
	now := number(reply)
	for i := range decisions {
		r := reply[8+i*replySize:]
		flags := r[0]
		var n [6]int64
		for j := range n {
			n[j] = number(r[1+8*j:])
		}
		quota, remaining, retry, next, reset, delay := n[0], n[1], n[2], n[3], n[4], n[5]
		allowed := flags&flagAllowed != 0
		if flags > flagAllowed|flagDamaged || now < 0 || quota < 0 || remaining < 0 || remaining > quota ||
			allowed != (retry == 0) || retry < -1 || retry > maxWait ||
			next < 0 || next > reset || reset > maxWait || delay < 0 || delay > maxWait {
			return damaged, fmt.Errorf("redis answered what cannot be: flags %d, quota, remaining, retry, next, reset, delay %d", flags, n)
		}
		if flags&flagDamaged != 0 {
			damaged = i
		}
		decisions[i] = algorithms.Micros(allowed, quota, remaining, retry, next, reset, delay)
		decisions[i].At = now
	}
	return damaged, nil
}

// maxWait is above every wait that a valid limit can lead to, in microseconds.
const maxWait = 1 << 50

func number(s string) int64 {
	_ = s[7]
	return int64(uint64(s[0])<<56 | uint64(s[1])<<48 | uint64(s[2])<<40 | uint64(s[3])<<32 |
		uint64(s[4])<<24 | uint64(s[5])<<16 | uint64(s[6])<<8 | uint64(s[7]))
}
