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
	maxGroup  = 255

	flagAllowed = 1
	flagDamaged = 2
)

// argument is a check as the script reads it.
func argument(c *store.Check) string {
	wire, name := c.Rule.Wire(), c.Rule.Algorithm().Name()
	b := make([]byte, 0, len(wire)+8+len(name)+1)
	b = append(b, wire...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Cost))
	b = append(b, name...)
	b = append(b, 0)
	return string(b)
}

// decode reads the script's reply, and believes nothing that cannot be. It returns the
// index of a check whose stored state was damaged, or -1.
func decode(reply string, decisions []algorithms.Decision) (damaged int, err error) {
	damaged = -1
	if len(reply) != replySize*len(decisions) {
		return damaged, fmt.Errorf("redis answered %d bytes to %d checks, expected %d",
			len(reply), len(decisions), replySize*len(decisions))
	}
	for i := range decisions {
		r := reply[i*replySize:]
		flags := r[0]
		var n [6]int64
		for j := range n {
			n[j] = number(r[1+8*j:])
		}
		quota, remaining, retry, next, reset, delay := n[0], n[1], n[2], n[3], n[4], n[5]
		allowed := flags&flagAllowed != 0
		if flags > flagAllowed|flagDamaged || quota < 0 || remaining < 0 || remaining > quota ||
			allowed != (retry == 0) || retry < -1 || retry > maxWait ||
			next < 0 || next > reset || reset > maxWait || delay < 0 || delay > maxWait {
			return damaged, fmt.Errorf("redis answered what cannot be: flags %d, quota, remaining, retry, next, reset, delay %d", flags, n)
		}
		if flags&flagDamaged != 0 {
			damaged = i
		}
		decisions[i] = algorithms.Micros(allowed, quota, remaining, retry, next, reset, delay)
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
