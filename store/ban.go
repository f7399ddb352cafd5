package store

import (
	"cmp"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Ban says when a key is banned, and for how long. A key that the limit has refused After
// times within the time Within is banned for the time For. While it is banned, its requests
// are refused and not counted. The next ban is twice as long, up to UpTo. If UpTo has passed
// since the end of the last ban, the next one lasts For again.
//
// Refusals are counted from the first one on. When Within has passed since then, the next
// refusal counts as a first one. The Lua port is lua/ban.lua.
type Ban struct {
	For    time.Duration // from a second to algorithms.MaxWindow, in whole microseconds
	After  int64         // from 1 to algorithms.MaxEvents
	Within time.Duration // as For
	UpTo   time.Duration // at least For; 0 means For, so that bans do not become longer
}

func (b *Ban) longest() time.Duration { return cmp.Or(b.UpTo, b.For) }

// Params returns the numbers that Go and Lua compute with: For, After, Within and UpTo, with
// times in microseconds.
func (b *Ban) Params() [4]int64 {
	return [4]int64{b.For.Microseconds(), b.After, b.Within.Microseconds(), b.longest().Microseconds()}
}

// The state of a ban has three numbers.
const (
	banUntil = iota // the end of the last ban
	banSince        // the time of the first refusal that is counted
	banCount        // refusals*banLevels + how often the ban was doubled

	banLevels = 64

	// A state with numbers beyond this bound is damaged, because they are not exact in Lua.
	maxExact = 1 << 53
)

// open reads a state as of now, without what no longer counts. A ban that ends later than one that begins now
// is from before the clock went back: it is over, because nobody knows when it began.
func (b *Ban) open(s algorithms.State, now int64) (until, since, count, level int64) {
	p := b.Params()
	for _, n := range s {
		if n < 0 || n >= maxExact {
			return 0, now, 0, 0
		}
	}
	until, since, count, level = s[banUntil], s[banSince], s[banCount]/banLevels, s[banCount]%banLevels
	if until > now && until > now+b.length(level) {
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

// length returns how long a ban is that was doubled so often, in microseconds.
func (b *Ban) length(level int64) int64 {
	p := b.Params()
	length := p[0]
	for range level {
		length = min(2*length, p[3])
	}
	return length
}

// Left returns for how many more microseconds a key is banned; 0 if it is not.
func (b *Ban) Left(s algorithms.State, now int64) int64 {
	until, _, _, _ := b.open(s, now)
	return max(0, until-now)
}

// Counted returns the refusals that count towards the next ban.
func (b *Ban) Counted(s algorithms.State, now int64) Refusals {
	_, since, count, level := b.open(s, now)
	r := Refusals{Count: count, Next: time.Duration(b.length(level)) * time.Microsecond}
	if count > 0 {
		r.Left = time.Duration(since+b.Params()[2]-now) * time.Microsecond
	}
	return r
}

// Refused counts a refusal of a key that is not banned. It returns the next state; left, the
// length in microseconds of the ban that begins, or 0; and life, for how many microseconds
// the state must be kept.
func (b *Ban) Refused(s algorithms.State, now int64) (next algorithms.State, left, life int64) {
	p := b.Params()
	until, since, count, level := b.open(s, now)
	count++
	if count >= p[1] {
		if left = b.length(level); left < p[3] {
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
