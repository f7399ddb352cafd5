package main

import (
	"cmp"
	"slices"
	"time"
)

// request is what the kit knows of one request. Times are since the beginning of the run.
type request struct {
	client     int
	sent, done time.Duration
	arrivals   []time.Duration // at the upstream
	status     int             // 0: no answer, or none in time
	retryAfter int             // in seconds; -1 without the header
	remaining  int             // -1 without a header
}

func (r request) failed() bool  { return r.status == 0 || r.status >= 500 }
func (r request) refused() bool { return r.status == 429 }

// span is a time that is known only by its bounds: a limiter decides between the moment when a client sends a request and the
// moment when it arrives at the upstream. So what the kit finds is certain, however slow the machine is.
type span struct {
	from, to time.Duration
	index    int // of the request
}

// grace is what clocks may be off, such as those that count in milliseconds.
const grace = 10 * time.Millisecond

// verdict counts what a limiter did in a run.
type verdict struct {
	offered, admitted, refused, failed int

	most        int           // admitted to one client within one window
	beyond      int           // admitted although an exact limiter would have refused them
	causeless   int           // refused although there was room
	unavailable time.Duration // the half seconds in which a request failed
	retry, left said
}

// said counts what headers said. What is more is more than the truth: a longer wait, or more left.
type said struct{ right, less, more int }

func (s *said) count(less, more bool) {
	switch {
	case less:
		s.less++
	case more:
		s.more++
	default:
		s.right++
	}
}

// judge compares what was seen with the promise. A request that failed may have been charged until the later of its end and settled.
func judge(requests []request, p promise, settled time.Duration) verdict {
	v := verdict{offered: len(requests)}
	clients := make(map[int][]request)
	slots := make(map[time.Duration]bool)
	const slot = 500 * time.Millisecond
	for _, r := range requests {
		clients[r.client] = append(clients[r.client], r)
		v.admitted += len(r.arrivals)
		switch {
		case r.failed():
			v.failed++
			slots[r.sent/slot] = true
		case r.refused():
			v.refused++
		}
	}
	v.unavailable = slot * time.Duration(len(slots))
	for _, own := range clients {
		v.judgeAnswers(own, v.judgeAdmitted(own, p), p, settled)
	}
	return v
}

// judgeAdmitted counts what one client got beyond the limit, and returns the indexes of those requests. What is beyond counts as used
// for nothing that comes later: an exact limiter would have refused it.
func (v *verdict) judgeAdmitted(own []request, p promise) (beyond map[int]bool) {
	beyond = make(map[int]bool)
	var all []span
	for i, r := range own {
		for _, at := range r.arrivals {
			all = append(all, span{r.sent, at, i})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.to, b.to) })
	var within, every []time.Duration // the earliest that those can have been which arrived no later
	for _, s := range all {
		if fits(latestFirst(within), 1, p.takes) > s.to+grace {
			v.beyond++
			beyond[s.index] = true
		} else {
			within = append(within, s.from)
		}
		every = append(every, s.from)
		n := 0
		for _, from := range every {
			if s.to-from < p.window-grace {
				n++
			}
		}
		v.most = max(v.most, n)
	}
	return beyond
}

// judgeAnswers holds what one client was told against what the upstream counted.
func (v *verdict) judgeAnswers(own []request, beyond map[int]bool, p promise, settled time.Duration) {
	for i, r := range own {
		switch {
		case r.refused():
			certain, possible := before(own, beyond, i, r.done, settled)
			if fits(possible, 1, p.room) < r.sent-grace {
				v.causeless++
			}
			if r.retryAfter < 0 {
				continue
			}
			// A header has whole seconds, rounded up.
			told := time.Duration(r.retryAfter) * time.Second
			short := p.whole && fits(certain, 1, p.room) > r.done+told+grace
			long := fits(possible, 1, p.room) < r.sent+told-time.Second-grace
			v.retry.count(short, long)
		case len(r.arrivals) > 0 && r.remaining >= 0:
			at := r.arrivals[0]
			certain, possible := before(own, beyond, i, at, settled)
			certain, possible = latestFirst(append(certain, r.sent)), latestFirst(append(possible, at))
			more := r.remaining > 0 && p.whole && fits(certain, r.remaining, p.room) > at+grace
			less := r.remaining < p.limit && fits(possible, r.remaining+1, p.room) < r.sent-grace
			v.left.count(less, more)
		}
	}
}

// before returns the other charges of a client that can count for the request with the index i, which was decided by end: the
// earliest times of those within the limit that certainly came before it, and the latest of all that possibly did.
func before(own []request, beyond map[int]bool, i int, end, settled time.Duration) (certain, possible []time.Duration) {
	for j, r := range own {
		if j == i || r.sent >= end {
			continue
		}
		for _, at := range r.arrivals {
			if at <= own[i].sent && !beyond[j] {
				certain = append(certain, r.sent)
			}
			possible = append(possible, at)
		}
		if len(r.arrivals) == 0 && r.failed() {
			until := r.done
			if r.sent < settled {
				until = max(until, settled)
			}
			possible = append(possible, until)
		}
	}
	return latestFirst(certain), latestFirst(possible)
}

func latestFirst(times []time.Duration) []time.Duration {
	sorted := slices.Clone(times)
	slices.SortFunc(sorted, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	return sorted
}
