package gate

import "math"

// The constants of the limit. Changing one by a fifth to twice moves the mean of all scenarios of
// bench/overload by a hundredth or two at most, but for start.
const (
	// start is the limit of a gate that has seen nothing. 4 grows too late, 16 is too much for one worker.
	start = 8

	// rest is the elasticity at which the limit rests. It costs about 3 % of the answers. If it was lower, the
	// limit would fall too slowly where more requests do nothing.
	rest = 0.15

	// gain is how far the limit moves for an elasticity of 1 above rest, in steps.
	gain = 0.4

	// smallest and largest bound the step between the two limits, as a logarithm. The largest is a factor of
	// two. Alternating costs a tenth of the step. If it was smaller, changes would be seen late.
	smallest, largest = 0.2, 0.7

	// grow and shrink are what the step is multiplied by after a move in the same direction, and after a
	// turn. Their product is below 1, so noise shortens steps.
	grow, shrink = 1.25, 0.6

	// whole is the elasticity from which on, twice in a row, the limit takes whole steps. By chance that
	// happens once in 100 judgments.
	whole = 0.65

	// evidence is how many answers a judgment needs on each side for a step of 1, if they vary as those of a
	// memoryless server: the elasticity is then known within 0.4.
	evidence = 12.5

	// longest is in how many seconds the evidence should come. Where answers are rare, steps are larger.
	longest = 2

	// shortest is the shortest phase, 2^27 ns or 0.13 s. That is above the errors of clocks.
	shortest = 27

	// failing is the share of failures from which on the upstream has too much, though nothing waits here.
	failing = 0.1
)

// limit finds how many requests an upstream should have at once.
//
// While requests wait, it alternates between two limits, one step apart. From useful answers per second
// under each it computes the elasticity
//
//	e = difference of ln(answers per second) / difference of ln(limit)
//
// It is 1 where twice the requests bring twice the answers, 0 where they only wait longer inside the
// upstream, and negative where they hinder each other. The limit goes up while e is above rest, and down while it
// is below.
//
// Latencies only say how long a phase must last, which is at most 8.6 s. A limit is not safe for concurrent use.
type limit struct {
	min, max int // bounds of the limit
	wall     func() int64
	n        int // the limit now

	center float64 // the logarithm of the middle of the two limits
	apart  float64 // their distance
	trend  float64 // the last judgment: above 0 is up
	worth  bool    // whether it was far above rest

	rhythm rhythm
	sides  [2]side // what was counted under the lower and the upper limit
	times  times

	now  int64 // the time of the last event
	full bool  // whether requests were held back until then
	free int64 // since when they are not
}

// newLimit returns a limit that has seen nothing.
func newLimit() *limit {
	return &limit{center: math.Log(start), apart: largest, worth: true, rhythm: rhythm{shift: shortest, phase: -1}}
}

func (l *limit) configure(o Options) {
	if l.min, l.max, l.wall = max(o.Min, 1), o.Max, o.Wall; l.max == 0 {
		l.max = math.MaxInt32
	}
	l.bound()
	l.n = l.within(int(math.Round(math.Exp(l.center))))
}

// step is called before each change: so many ran and waited since the call before, until now, in ns.
func (l *limit) step(now int64, running, waiting int) {
	full := l.holds(running, waiting)
	switch {
	case full && now > l.rhythm.counts:
		l.side().held += now - max(l.now, l.rhythm.counts)
	case !full && l.full:
		l.free = l.now
	}
	l.full, l.now = full, now
	if l.rhythm.phase < 0 { // the first one has nothing to judge, and the limit that it starts with
		l.rhythm.begin(now, 0, l.wall)
	} else if l.rhythm.over(now) {
		l.turn()
	}
}

// holds reports whether requests are held back while so many run and wait. An upstream that refuses by itself leaves
// nothing to wait here, and yet has too much.
func (l *limit) holds(running, waiting int) bool {
	return waiting > 0 || running >= l.n || l.times.failures > failing
}

// done is called after that when a request that ran for took ns is over.
func (l *limit) done(now, took int64, a Answer) {
	l.times.add(float64(took), a, 1/float64(min(max(l.n, 64), 256)))
	if l.full && now > l.rhythm.counts {
		s := l.side()
		s.all++
		if a == Useful {
			s.good++
		}
	}
}

// side is that of this phase.
func (l *limit) side() *side { return &l.sides[l.rhythm.phase&1] }

// turn ends a phase: it judges if there is enough evidence, and begins the next phase.
func (l *limit) turn() {
	lower, upper := &l.sides[0], &l.sides[1]
	switch d := lower.distance(upper); {
	case !l.full && l.now-l.free > int64(10*l.times.mean)+1e9:
		l.sides = [2]side{} // too old to be compared with
	case l.enough(lower, d) && l.enough(upper, d):
		l.judge(lower, upper, d)
		l.sides = [2]side{}
	}
	if l.rhythm.fit(l.times.slot()) {
		l.sides = [2]side{}
	}
	l.rhythm.begin(l.now, l.times.slot(), l.wall)
	l.set()
}

// set puts the limit of this phase in force.
func (l *limit) set() {
	n := max(1, int(math.Round(math.Exp(l.center-l.apart/2))))
	if l.rhythm.phase&1 == 1 {
		n = int(math.Ceil(float64(n) * math.Exp(l.apart)))
	}
	l.n = l.within(n)
	l.side().n = l.n
}

func (l *limit) within(n int) int { return max(min(n, l.max), l.min) }

// bound keeps the middle where both limits can differ.
func (l *limit) bound() {
	l.center = max(min(l.center, math.Log(float64(l.max))-l.apart/2), math.Log(float64(l.min)))
}

// side is what was counted under one of the two limits.
type side struct {
	n         int   // the limit
	held      int64 // ns in which requests were held back
	good, all int   // useful and all answers in them
}

// speed is useful answers per second. It is never 0.
func (s *side) speed() float64 { return (float64(s.good) + 0.5) / float64(s.held) * 1e9 }

// distance is that of the logarithms of the limits, 0 if they cannot be compared.
func (s *side) distance(upper *side) float64 {
	if s.n == 0 || upper.n <= s.n {
		return 0
	}
	return math.Log(float64(upper.n) / float64(s.n))
}

// enough reports whether the answers of a side can judge limits of this distance: never one of 0.
func (l *limit) enough(s *side, distance float64) bool {
	need := evidence * l.times.spread() / (distance * distance)
	return float64(s.good) > need || float64(s.all) > 4*need
}

// judge moves the limit.
func (l *limit) judge(lower, upper *side, distance float64) {
	elasticity := math.Log(upper.speed()/lower.speed()) / distance
	trend := min(max(elasticity-rest, -1), 1)
	if lower.good+upper.good == 0 {
		trend = -1
	}
	worth := elasticity > whole
	switch {
	case worth && l.worth:
		l.apart = largest
		l.center += largest
	case trend*l.trend > 0:
		l.apart *= grow
		l.center += gain * l.apart * trend
	default:
		l.apart *= shrink
		l.center += gain * l.apart * trend
	}
	l.trend, l.worth = trend, worth
	speed := (lower.speed() + upper.speed()) / 2
	least := math.Sqrt(evidence * l.times.spread() / (speed * longest))
	l.apart = min(max(l.apart, smallest, least), largest)
	l.bound()
}
