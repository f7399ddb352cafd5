package store

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// Widener is a [Networker] that counts for the whole fleet which keys of a network are banned at once, so that a ban can widen
// to the network. A network of which enough keys are banned becomes a suspect. The processes that see its requests note which
// of its other keys pass. Then one of them decides, see [Widener.Judge].
//
// All calls ask the store's backend at once, and fail as Take does.
type Widener interface {
	Networker

	// NoteBan notes that a key of a network is banned for so long, or with 0 that it is not. With at least from banned keys, the
	// network becomes a suspect, unless a decision about it holds or there are [MaxSuspects].
	NoteBan(ctx context.Context, rule *Rule, network netip.Prefix, key string, left time.Duration, from int) error

	// Widenings returns the suspects of a zone, and the decisions that hold.
	Widenings(ctx context.Context, rule *Rule) (Widenings, error)

	// NotePassed notes keys of a suspect that pass. They count for [PassedFor], unless they are banned.
	NotePassed(ctx context.Context, rule *Rule, network netip.Prefix, keys []string) error

	// Judge decides about a suspect, which then is none any longer. If several processes call it at once, one of them gets the
	// decision, and the others get one of kind [Undecided].
	Judge(ctx context.Context, rule *Rule, network netip.Prefix, by Widen) (Widening, error)

	// BanNetwork is SetNetwork for a ban that widens, and reports whether it did. It leaves any override that the network has: an
	// operator may have set one, of which this process has not learned.
	BanNetwork(ctx context.Context, rule *Rule, network netip.Prefix, ban Override) (bool, error)
}

const (
	// MaxSuspects is how many networks of a zone are suspects at once.
	MaxSuspects = 64

	// PassedFor is how long a key counts after it has passed.
	PassedFor = 10 * time.Minute

	// SparedFor is how long a network that was spared becomes no suspect again, at most.
	SparedFor = 10 * time.Minute

	// SuspectFor is how long a network stays a suspect if no process decides.
	SuspectFor = 15 * time.Minute

	// MinWiden and MaxWiden are the bounds of [Widen].
	MinWiden, MaxWiden = 2, 1000
)

// Widen says when the bans of keys widen to their network.
type Widen struct {
	From     int           // how many of its keys are banned at once: from MinWiden to MaxWiden
	Innocent int           // how many of its other keys may pass: from 0 to MaxWiden
	For      time.Duration // for how long the network is banned, and no other decision is made about it
}

// Validate reports the first invalid field, under the name of its option.
func (w *Widen) Validate() error {
	switch {
	case w.From < MinWiden || w.From > MaxWiden:
		return fmt.Errorf("ban: widen from must be from %d to %d keys, got %d", MinWiden, MaxWiden, w.From)
	case w.Innocent < 0 || w.Innocent > MaxWiden:
		return fmt.Errorf("ban: widen innocent must be from 0 to %d keys, got %d", MaxWiden, w.Innocent)
	}
	return nil
}

// Widenings are the suspects of a zone, those of the longest time first, and the decisions that hold, without an order.
type Widenings struct {
	Suspects []Suspect
	Decided  []Widening
}

// Suspect is a network of which enough keys are banned at once.
type Suspect struct {
	Network netip.Prefix
	For     time.Duration // how long ago it became one
}

// Verdict says what was decided about a suspect.
type Verdict byte

const (
	Undecided Verdict = iota // it is no suspect, or enough of its keys are not banned any longer
	Spared                   // too many other keys pass
	Widened                  // it is to be banned; its bans so far no longer count
)

// Widening is a decision about a suspect.
type Widening struct {
	Network        netip.Prefix
	Verdict        Verdict
	Banned, Passed int           // how many of its keys were banned, and how many others had passed
	Left           time.Duration // for how much longer the decision holds
}

// Decide returns the verdict on a network of which so many keys are banned, and so many others pass, and for how long it holds.
func (w *Widen) Decide(banned, passed int) (Verdict, time.Duration) {
	switch {
	case banned < w.From:
		return Undecided, 0
	case passed > w.Innocent:
		return Spared, min(w.For, SparedFor)
	}
	return Widened, w.For
}
