package engine

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// maxSteps bounds the steps of a series. When there are more, steps become twice as long.
const maxSteps = 4096

// calendar divides the time of a replay into steps, the same for all series.
type calendar struct {
	start int64 // in microseconds since 1970
	step  int64
	set   bool
	ages  uint8 // how often steps have become longer
}

// index returns the step of a time.
func (c *calendar) index(now int64) int {
	const minute = int64(time.Minute / time.Microsecond)
	if !c.set {
		c.set, c.step = true, minute
		c.start = now - ((now%minute)+minute)%minute
	}
	for (now-c.start)/c.step >= maxSteps {
		c.step *= 2
		c.ages++
	}
	return int((now - c.start) / c.step)
}

// cells counts requests in steps. It has only the steps in which there were some.
type cells struct {
	all  []cell
	ages uint8
}

type cell struct {
	step              int32
	admitted, refused uint32
}

// add counts a request in a step.
func (s *cells) add(c *calendar, step int, refused bool) {
	for s.ages < c.ages {
		s.halve()
	}
	n := len(s.all)
	if n == 0 || s.all[n-1].step != int32(step) {
		s.all = append(s.all, cell{step: int32(step)})
		n++
	}
	if refused {
		s.all[n-1].refused++
	} else {
		s.all[n-1].admitted++
	}
}

// halve puts pairs of steps together.
func (s *cells) halve() {
	s.ages++
	n := 0
	for _, c := range s.all {
		c.step /= 2
		if n > 0 && s.all[n-1].step == c.step {
			s.all[n-1].admitted += c.admitted
			s.all[n-1].refused += c.refused
			continue
		}
		s.all[n] = c
		n++
	}
	s.all = s.all[:n]
}

// series returns all steps up to the last one of the replay.
func (s *cells) series(c *calendar, last int) replay.Series {
	for s.ages < c.ages {
		s.halve()
	}
	made := replay.Series{
		Start: time.UnixMicro(c.start).UTC(), Step: time.Duration(c.step) * time.Microsecond,
		Admitted: make([]int64, last+1), Refused: make([]int64, last+1),
	}
	for _, one := range s.all {
		made.Admitted[one.step] += int64(one.admitted)
		made.Refused[one.step] += int64(one.refused)
	}
	return made
}
