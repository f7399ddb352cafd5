package store

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"
)

var (
	process = func() string {
		var b [8]byte
		_, _ = rand.Read(b[:])
		return hex.EncodeToString(b[:])
	}()
	lastHold atomic.Uint64
)

// Process names this process, which no other one is called.
func Process() string { return process }

// NewHold names a charge that lasts until it is given back, for [Check]. No other charge has
// the name: it is made of the process and a number.
func NewHold() string { return process + "-" + strconv.FormatUint(lastHold.Add(1), 36) }
