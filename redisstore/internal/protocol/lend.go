package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// LendScript assembles lend.lua for the clock of a script.
func LendScript(s *Script) *Script {
	var ports strings.Builder
	for _, name := range algorithms.Names() {
		a, _ := algorithms.Get(name)
		if port := a.Script(); lend.Lendable(a, algorithms.Limit{}) {
			if strings.Contains(port, "muldiv(") {
				port = lua.MulDiv + port
			}
			fmt.Fprintf(&ports, "if name == %q then\n%s\nend\n", name, port)
		}
	}
	text := strings.Replace(lua.Lend, "--[[algorithms]]", ports.String(), 1)
	text = strings.ReplaceAll(text, "--[[muldiv]]", lua.MulDiv)
	text = strings.ReplaceAll(text, "MAX_LEASE", fmt.Sprint(lend.MaxLease))
	return TextScript(s.Finish(text))
}

// LendOp is what lend.lua is to do with one key.
type LendOp struct {
	Rule     *store.Rule
	Prepared *store.Prepared
	Key      string // in Redis
	Ask      lend.Ask
	Peek     bool

	// Adjustment changes a charge; nil for an ask or a peek.
	Adjustment *store.Adjustment
}

// LendAnswer is the answer to a LendOp. The Quota of an adjustment is 1 if it has changed anything.
type LendAnswer struct {
	lend.Answer
	Damaged bool
	Lent    int64 // to all
}

// What a LendOp asks, in the first byte.
const (
	lendAsk = iota
	lendAdjust
	lendPeek

	lendScarce  = 4
	lendBorrows = 8
)

// Keys appends the keys of an operation.
func (o *LendOp) Keys(to []any) []any {
	if isCounter(o.Rule.Algorithm()) {
		return append(to, o.Key, o.Key)
	}
	return append(to, o.Key, BookKey(o.Key))
}

// BookKey returns the key of the book beside the state of a Recorder.
func BookKey(state string) string { return state + ":book" }

// Append appends the operation in the form that lend.lua reads.
func (o *LendOp) Append(to []byte) []byte {
	a := &o.Ask
	kind, numbers := byte(lendAsk), [...]int64{a.Number, a.Spent, a.Live, a.Want, a.Lease}
	switch {
	case o.Adjustment != nil:
		kind, numbers = lendAdjust, [5]int64{o.Adjustment.At, o.Adjustment.Turn, o.Adjustment.Delta}
	case o.Peek:
		kind = lendPeek
	}
	if a.Scarce {
		kind += lendScarce
	}
	if a.Borrows {
		kind += lendBorrows
	}
	to = append(to, kind)
	to = binary.BigEndian.AppendUint64(to, uint64(a.Cost))
	to = binary.BigEndian.AppendUint64(to, a.Borrower)
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint64(to, uint64(n))
	}
	return append(to, o.Prepared.Wire...)
}

// ReadLend reads the reply of lend.lua to some operations.
func ReadLend(reply string, ops []LendOp) ([]LendAnswer, error) {
	r := reader{rest: reply}
	now := r.number()
	answers := make([]LendAnswer, len(ops))
	for i := range ops {
		flags := r.byte()
		var n [10]int64
		for j := range n {
			n[j] = r.number()
		}
		a, o := &answers[i], &ops[i]
		allowed := flags&flagAllowed != 0
		quota, remaining, retry, next, reset := n[0], n[1], n[2], n[3], n[4]
		a.Held, a.Lease, a.Others, a.Pause, a.Lent = n[5], n[6], n[7], n[8], n[9]
		if flags > flagAllowed|flagDamaged || quota < 0 || remaining < 0 || remaining > quota ||
			allowed && (retry < 0 || retry > maxAhead) || !allowed && (retry == 0 || retry < -1 || retry > maxWait) ||
			next < 0 || next > reset || reset > maxWait ||
			a.Held < 0 || a.Held > algorithms.MaxEvents || a.Held > 0 && o.Ask.Number == 0 || a.Held < o.Ask.Live && a.Held > 0 ||
			a.Lease < 0 || a.Lease > lend.MaxLease || a.Others < 0 || a.Pause < -1 || a.Lent < 0 {
			return nil, fmt.Errorf("redis answered an invalid loan: flags %d, numbers %d", flags, n)
		}
		a.Decision = algorithms.Micros(allowed, quota, remaining, retry, next, reset, 0)
		a.At, a.Damaged = now, flags&flagDamaged != 0
	}
	if r.short || r.rest != "" || now < 0 || now > maxTime {
		return nil, errors.New("redis answered a reply about loans of a wrong length")
	}
	return answers, nil
}
