package store

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Ban says when a key is banned, and for how long. A key that the limit has refused After
// times within Within is banned for For; what comes meanwhile is refused without being
// counted. The next ban is twice as long, up to UpTo, unless UpTo has passed since the end
// of the last one: then it begins anew with For.
//
// Refusals are counted from the first one on; when Within has passed since then, the next
// refusal is a first one. Lua does the same, in lua/ban.lua.
type Ban struct {
	For    time.Duration
	After  int64
	Within time.Duration
	UpTo   time.Duration // 0: For, so that all bans are alike
}

// MinBan is the shortest ban, and the shortest time within which refusals are counted.
const MinBan = time.Second

// Validate says what is wrong, with the names that the options have.
func (b *Ban) Validate() error {
	for _, d := range []struct {
		name         string
		value, least time.Duration
	}{{"duration", b.For, MinBan}, {"window", b.Within, MinBan}, {"up_to", b.longest(), b.For}} {
		switch {
		case d.value < d.least || d.value > algorithms.MaxWindow:
			return fmt.Errorf("ban: %s must be from %v to %.0fd, got %v", d.name, d.least, algorithms.MaxWindow.Hours()/24, d.value)
		case d.value%time.Microsecond != 0:
			return fmt.Errorf("ban: %s must be a whole number of microseconds, got %v", d.name, d.value)
		}
	}
	if b.After < 1 || b.After > algorithms.MaxEvents {
		return fmt.Errorf("ban: after must be from 1 to %d refusals, got %d", algorithms.MaxEvents, b.After)
	}
	return nil
}

func (b *Ban) longest() time.Duration {
	if b.UpTo == 0 {
		return b.For
	}
	return b.UpTo
}

// Params are the numbers that both twins compute with: For, After, Within and UpTo.
func (b *Ban) Params() [4]int64 {
	return [4]int64{b.For.Microseconds(), b.After, b.Within.Microseconds(), b.longest().Microseconds()}
}

// The state of a ban is the end of the last one, when refusals began to be counted, and
// their count together with how often the ban was doubled.
const (
	banUntil = iota
	banSince
	banCount

	banLevels = 64

	// What is beyond these cannot be: numbers that Lua would not have exact, and a clock that
	// has gone back by more than a day.
	maxExact    = 1 << 53
	maxStepBack = 24 * int64(time.Hour/time.Microsecond)
)

// open makes of a state what it is at a time.
func (b *Ban) open(s algorithms.State, now int64) (until, since, count, level int64) {
	p := b.Params()
	for _, n := range s {
		if n < 0 || n >= maxExact {
			return 0, now, 0, 0
		}
	}
	until, since, count, level = s[banUntil], s[banSince], s[banCount]/banLevels, s[banCount]%banLevels
	if until > now+p[3]+maxStepBack {
		until, level = 0, 0
	}
	if since > now || now-since >= p[2] {
		since, count = now, 0
	}
	if until+p[3] <= now {
		level = 0
	}
	return until, since, count, level
}

// Left is how long a key is banned still, in microseconds; 0 if it is not.
func (b *Ban) Left(s algorithms.State, now int64) int64 {
	until, _, _, _ := b.open(s, now)
	return max(0, until-now)
}

// Refused counts a refusal of a key that is not banned. Left is above 0 if a ban begins; life
// is how long the state is worth something.
func (b *Ban) Refused(s algorithms.State, now int64) (next algorithms.State, left, life int64) {
	p := b.Params()
	until, since, count, level := b.open(s, now)
	count++
	if count >= p[1] {
		left = p[0]
		for range level {
			left = min(2*left, p[3])
		}
		if left < p[3] {
			level++
		}
		until, count = now+left, 0
		life = left
	} else {
		life = since + p[2] - now
	}
	if level > 0 {
		life = max(life, until+p[3]-now)
	}
	return algorithms.State{until, since, count*banLevels + level}, left, life
}
