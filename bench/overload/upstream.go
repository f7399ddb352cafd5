package main

import "container/heap"

// upstream is a server with a bottleneck. A request first takes a delay, which uses nothing, and then
// work at the bottleneck.
//
// If it is shared, all requests in work share the workers, as threads share processors. Else each worker
// does one request at a time, and the others wait inside. Each request beyond the workers costs some of
// the speed: memory, locks, caches.
type upstream struct {
	workers     int
	shared      bool
	thrash      float64 // the part of the speed that a request beyond the workers costs, relative to the workers
	delay       int64   // ns
	slower      float64 // 0 is 1
	connections int     // at most so many in work, 0 for no limit
	backlog     int     // then so many wait, then the upstream fails at once

	engine  *engine
	inside  int
	waiting []*job
	jobs    jobs
	done    float64 // ns of work that each job in work has had since the start
	at      int64   // when done was computed
	version int     // of the plan for the next job that ends
}

// job is a request in the upstream.
type job struct {
	work   float64 // ns
	end    float64 // it is over when done is that
	answer func(ok bool)
}

// serve takes a request, and calls answer when it is over.
func (u *upstream) serve(work float64, answer func(ok bool)) *job {
	j := &job{work: work, answer: answer}
	if u.connections > 0 {
		if u.inside >= u.connections+u.backlog {
			u.engine.after(1*ms, func() { answer(false) })
			return j
		}
		u.inside++
	}
	if u.delay > 0 {
		u.engine.after(u.delay, func() { u.begin(j) })
	} else {
		u.begin(j)
	}
	return j
}

// stop ends the work of a job, if it has begun.
func (u *upstream) stop(j *job) {
	u.advance()
	for i := range u.jobs {
		if u.jobs[i] == j {
			j.end = u.done
			heap.Fix(&u.jobs, i)
			u.finish()
			return
		}
	}
	if j != nil {
		j.work = 0
	}
}

// places is how many can be in work.
func (u *upstream) places() int {
	switch {
	case !u.shared:
		return u.workers
	case u.connections > 0:
		return u.connections
	}
	return 1 << 30
}

func (u *upstream) begin(j *job) {
	u.advance()
	if len(u.jobs) < u.places() {
		u.start(j)
		u.plan()
	} else {
		u.waiting = append(u.waiting, j)
	}
}

func (u *upstream) start(j *job) {
	j.end = u.done + j.work
	heap.Push(&u.jobs, j)
}

// speed is how fast each job in work goes on.
func (u *upstream) speed() float64 {
	n, w := float64(len(u.jobs)), float64(u.workers)
	if n == 0 {
		return 0
	}
	s := min(w/n, 1)
	if over := n + float64(len(u.waiting)) - w; over > 0 {
		s /= 1 + u.thrash*over/w
	}
	if u.slower > 0 {
		s /= u.slower
	}
	return s
}

// advance does the work until now.
func (u *upstream) advance() {
	u.done += float64(u.engine.now-u.at) * u.speed()
	u.at = u.engine.now
}

// plan plans the end of the next job.
func (u *upstream) plan() {
	u.version++
	if len(u.jobs) == 0 {
		return
	}
	version := u.version
	wait := int64((u.jobs[0].end-u.done)/u.speed()) + 1
	u.engine.after(max(wait, 1), func() {
		if version == u.version {
			u.finish()
		}
	})
}

// finish ends the jobs that are done, and begins others.
func (u *upstream) finish() {
	u.advance()
	var over []*job
	for len(u.jobs) > 0 && u.jobs[0].end <= u.done+1 {
		over = append(over, heap.Pop(&u.jobs).(*job))
	}
	for len(u.waiting) > 0 && len(u.jobs) < u.places() {
		j := u.waiting[0]
		u.waiting[0] = nil
		u.waiting = u.waiting[1:]
		u.start(j)
	}
	u.plan()
	for _, j := range over {
		u.inside--
		j.answer(true)
	}
}

// change changes the upstream while it works.
func (u *upstream) change(do func(*upstream)) {
	u.advance()
	do(u)
	u.finish()
}

// jobs is a heap: the first ends first.
type jobs []*job

func (h jobs) Len() int           { return len(h) }
func (h jobs) Less(i, j int) bool { return h[i].end < h[j].end }
func (h jobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *jobs) Push(x any)        { *h = append(*h, x.(*job)) }

func (h *jobs) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return j
}
