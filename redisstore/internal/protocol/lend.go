package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/msgpack"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// ErrLent is the error of a request for a key of which parts are lent: only lend.lua decides about
// such a key. Nothing was charged.
var ErrLent = errors.New("parts of the limit are lent")

// LendOp is what lend.lua is to do with one key.
type LendOp struct {
	Rule     *store.Rule
	Prepared *store.Prepared
	Key      string // in Redis
	Ask      lend.Ask
	Peek     bool
	Final    bool // its request does not ask again, so a ban counts each refusal: see [lend.Answer]

	// Adjustment changes a charge; nil for an ask or a peek.
	Adjustment *store.Adjustment

	KeyRules *KeyRules // nil without any
}

// overrides and bans report whether the script is to look at what the key may have.
func (o *LendOp) overrides() bool { return o.KeyRules != nil && o.KeyRules.Override != "" }
func (o *LendOp) bans() bool      { return o.KeyRules != nil && o.KeyRules.Ban != nil }

// LendAnswer is the answer to a LendOp. The Quota of an adjustment is 1 if it has changed anything, and
// its Remaining is 1 if something is free after it.
type LendAnswer struct {
	lend.Answer
	Damaged   bool
	Lent      int64 // to all
	Borrowers int64
	Err       error // why it was not decided

	// Unwritten says that Redis could not write. What the ask reports is not noted then, and only the
	// decision holds: a refusal, or one at no cost.
	Unwritten bool
}

// What a LendOp asks, in the first byte.
const (
	lendAsk = iota
	lendAdjust
	lendPeek

	lendScarce    = 4
	lendBorrows   = 8
	lendOverrides = 16
	lendBans      = 32
	lendFinal     = 64
)

// Append appends the operation in the form that lend.lua reads.
func (o *LendOp) Append(to []byte) []byte {
	a := &o.Ask
	kind, numbers := byte(lendAsk), [...]int64{a.Number, a.Spent, a.Live, a.Want, a.Lease, a.Brief}
	switch {
	case o.Adjustment != nil:
		kind, numbers = lendAdjust, [6]int64{o.Adjustment.At, o.Adjustment.Turn, o.Adjustment.Delta}
	case o.Peek:
		kind = lendPeek
	}
	if a.Scarce {
		kind += lendScarce
	}
	if a.Borrows {
		kind += lendBorrows
	}
	if o.overrides() {
		kind += lendOverrides
	}
	if o.bans() {
		kind += lendBans
	}
	if o.Final {
		kind += lendFinal
	}
	to = append(to, kind)
	to = binary.BigEndian.AppendUint64(to, uint64(a.Cost))
	to = binary.BigEndian.AppendUint64(to, a.Borrower)
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint64(to, uint64(n))
	}
	to = append(to, o.Prepared.Wire...)
	if o.bans() {
		for _, p := range o.KeyRules.Ban.Params() {
			to = msgpack.AppendInt(to, p)
		}
	}
	return to
}

// AppendLend appends groups of operations in the form that lend.lua reads, and their keys.
func AppendLend(text []byte, keys []any, group []LendOp) ([]byte, []any) {
	text = append(text, byte(len(group)))
	for i := range group {
		o := &group[i]
		text, keys = o.Append(text), append(keys, o.Key)
		if o.overrides() {
			keys = append(keys, o.KeyRules.Override)
		}
		if o.bans() {
			keys = append(keys, o.KeyRules.BanState)
		}
	}
	return text, keys
}

// LendReply is a reply of lend.lua. It is read group by group.
type LendReply struct {
	reader
	now int64

	// Unable is why Redis cannot write, from the reply to a careful call; nil if it can.
	Unable *UnwrittenError
}

// NewLendReply begins to read a reply.
func NewLendReply(text string, careful bool) *LendReply {
	r := &LendReply{reader: reader{rest: text}}
	r.now = r.number()
	if careful {
		r.Unable = r.unable()
	}
	return r
}

// How a group went, as its first byte says.
const (
	lendDone = iota
	lendFailed
	lendUnwritten
	lendUncharged
)

// Group reads the answers to the operations of a group. If the group failed, they have an error.
func (l *LendReply) Group(ops []LendOp) ([]LendAnswer, error) {
	answers := make([]LendAnswer, len(ops))
	var failed error
	switch went := l.byte(); {
	case went == lendFailed:
		failed = scriptError(strings.Clone(l.text(int(l.uint16()))))
	case went == lendUncharged && l.Unable != nil:
		failed = l.Unable
	case went == lendDone, went == lendUnwritten && l.Unable != nil:
		for i := range ops {
			if err := answers[i].read(l, &ops[i]); err != nil {
				return nil, err
			}
			answers[i].Unwritten = went == lendUnwritten
		}
	default:
		return nil, fmt.Errorf("redis answered that a group of asks went in an unknown way: %d", went)
	}
	for i := range answers {
		answers[i].Err = failed
	}
	if l.short || l.now < 0 || l.now > maxTime {
		return nil, errLendLength
	}
	return answers, nil
}

// End checks that all was read.
func (l *LendReply) End() error {
	if l.short || l.rest != "" {
		return errLendLength
	}
	return nil
}

var errLendLength = errors.New("redis answered a reply about loans of a wrong length")

// keyError is an error that the script met with one key.
type keyError struct{ said string }

func (e keyError) Error() string { return e.said }

// RedisError implements the error interface of go-redis.
func (keyError) RedisError() {}

// scriptError returns the error of a text that Redis said to the script.
func scriptError(said string) error {
	if ReadError(said).RefusesWrite() {
		return Unwritten(said)
	}
	return keyError{said}
}

func (a *LendAnswer) read(r *LendReply, o *LendOp) error {
	flags, override := r.byte(), ""
	var n [11]int64
	for j := range n {
		n[j] = r.number()
	}
	if flags&flagOverride != 0 {
		override = strings.Clone(r.text(int(r.uint16())))
	}
	allowed, own := flags&flagAllowed != 0, flags&flagOwn != 0
	flags &^= flagOwn
	quota, remaining, retry, next, reset := n[0], n[1], n[2], n[3], n[4]
	a.Held, a.Lease, a.Others, a.Pause, a.Lent, a.Borrowers = n[5], n[6], n[7], n[8], n[9], n[10]
	rules := Op{KeyRules: o.KeyRules}
	if !rules.mayHave(flags) || flags&flagLent != 0 || own && (allowed || o.Ask.Borrower == 0) || flags&flagOverride != 0 && override == "" || !possible(allowed, quota, remaining, retry, next, reset) ||
		a.Held < 0 || a.Held > o.Ask.Most() || a.Held > 0 && o.Ask.Number == 0 || a.Held < o.Ask.Live && a.Held > 0 ||
		a.Lease < 0 || a.Lease > lend.MaxLease || a.Others < 0 || a.Pause < -1 || a.Lent < 0 || a.Borrowers < 0 || a.Borrowers > lend.MaxLoans {
		return fmt.Errorf("redis answered an invalid loan: flags %d, numbers %d", flags, n)
	}
	a.Decision = algorithms.Micros(allowed, quota, remaining, retry, next, reset, 0)
	a.At, a.Damaged, a.Own = r.now, flags&flagDamaged != 0, own
	a.Exempt, a.Banned = flags&flagExempt != 0, flags&flagBanned != 0
	a.BanBegins, a.Override = flags&flagBanBegins != 0, override
	a.Overruled = flags&(flagExempt|flagBanned|flagOverride) != 0
	return nil
}
