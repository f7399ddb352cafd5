package store

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync/atomic"
)

var (
	process     = strings.ToLower(rand.Text())
	lastLeaseID atomic.Uint64
)

// Process returns a random name for this process. No other process has it.
func Process() string { return process }

// NewLeaseID returns a name for [Check].LeaseID, made of the process's name and a number. No other
// charge has it.
func NewLeaseID() string { return process + "-" + strconv.FormatUint(lastLeaseID.Add(1), 36) }
