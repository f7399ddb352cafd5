package caddyratelimit

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// hold is what a request holds while it lives: slots, and with them the store.
type hold struct {
	use     use
	returns []store.Return
}

func (h *hold) release() {
	h.use.GiveBack(h.returns...)
	h.use.end()
}

// held are the charges that last until the request is over.
func (a *attempt) held() (returns []store.Return) {
	for i := range a.checks {
		if a.checks[i].Hold != "" {
			returns = append(returns, store.Return{Check: a.checks[i]})
		}
	}
	return returns
}

// turns are those to give back when the client does not wait for them.
func (a *attempt) turns() (returns []store.Return) {
	for i := range a.checks {
		if a.decisions[i].Delay > 0 {
			returns = append(returns, store.Return{Check: a.checks[i], Turn: a.decisions[i].Turn()})
		}
	}
	return returns
}

// Holds are named by process and number, which no other has.
var (
	thisProcess = func() string {
		var b [8]byte
		_, _ = rand.Read(b[:])
		return hex.EncodeToString(b[:]) + "-"
	}()
	lastHold atomic.Uint64
)

func newHold() string { return thisProcess + strconv.FormatUint(lastHold.Add(1), 36) }
