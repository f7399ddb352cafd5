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
	use         use
	corrections []store.Correction
}

func (h *hold) release() {
	h.use.Settle(h.corrections...)
	h.use.end()
}

// correction gives back all of a charge.
func (a *attempt) correction(i int) store.Correction {
	c, d := a.checks[i], &a.decisions[i]
	return store.Correction{Check: c, At: d.At, Turn: d.Turn(), Delta: -c.Cost}
}

// held are the charges that last until the request is over.
func (a *attempt) held() (back []store.Correction) {
	for i := range a.checks {
		if a.checks[i].Hold != "" {
			back = append(back, a.correction(i))
		}
	}
	return back
}

// turns are those to give back when the client does not wait for them.
func (a *attempt) turns() (back []store.Correction) {
	for i := range a.checks {
		if a.decisions[i].Delay > 0 {
			back = append(back, a.correction(i))
		}
	}
	return back
}

// Holds are named by process and number, which no other has.
var (
	thisProcess = func() string {
		var b [8]byte
		_, _ = rand.Read(b[:])
		return hex.EncodeToString(b[:])
	}()
	lastHold atomic.Uint64
)

func newHold() string { return thisProcess + "-" + strconv.FormatUint(lastHold.Add(1), 36) }
