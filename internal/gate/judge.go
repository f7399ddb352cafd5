package gate

import "math"

// side is what was counted under one of the two limits.
type side struct {
	n         int   // the limit
	held      int64 // ns in which requests were held back
	good, all int   // useful and all answers in them
}

func (s *side) add(a Answer) {
	s.all++
	if a == Useful {
		s.good++
	}
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

// enough reports whether the answers of a side can judge limits of this distance.
func (l *Limit) enough(s *side, distance float64) bool {
	if distance == 0 {
		return false
	}
	need := evidence * l.times.spread() / (distance * distance)
	return float64(s.good) > need || float64(s.all) > 4*need
}

// judge moves the limit.
func (l *Limit) judge(lower, upper *side, distance float64) {
	elasticity := math.Log(upper.speed()/lower.speed()) / distance
	trend := min(max(elasticity-Rest, -1), 1)
	if lower.good+upper.good == 0 {
		trend = -1
	}
	worth := elasticity > whole
	switch {
	case worth && l.worth:
		l.step = largest
		l.center += largest
	case trend*l.trend > 0:
		l.step *= grow
		l.center += gain * l.step * trend
	default:
		l.step *= shrink
		l.center += gain * l.step * trend
	}
	l.trend, l.worth = trend, worth
	speed := (lower.speed() + upper.speed()) / 2
	least := math.Sqrt(evidence * l.times.spread() / (speed * longest))
	l.step = min(max(l.step, smallest, least), largest)
	l.bound()
}
