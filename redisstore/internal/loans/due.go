package loans

import (
	"container/heap"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// schedule says when to look at entries: most hold something for seconds, so it would be a waste to
// look at all of them again and again.
type schedule struct {
	mu    sync.Mutex
	looks looks
}

// look is a time to look at an entry. Only the last one that was planned for the entry counts.
type look struct {
	at time.Duration
	*Entry
}

type looks []look

func (l looks) Len() int           { return len(l) }
func (l looks) Less(i, j int) bool { return l[i].at < l[j].at }
func (l looks) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *looks) Push(x any)        { *l = append(*l, x.(look)) }
func (l *looks) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = look{}
	*l = (*l)[:last]
	return x
}

// plan plans the next look at an entry, instead of the one that was planned before.
func (s *schedule) plan(e *Entry, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.planned != at {
		e.planned = at
		heap.Push(&s.looks, look{at, e})
	}
}

// next returns the entries at which it is time to look.
func (s *schedule) next(now time.Duration) (entries []*Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.looks) > 0 && s.looks[0].at <= now {
		if l := heap.Pop(&s.looks).(look); l.at == l.planned {
			l.planned = 0
			entries = append(entries, l.Entry)
		}
	}
	return entries
}

// Due is an ask that is due.
type Due struct {
	*Entry
	Ask lend.Ask
}

// Due begins the asks that are due, and drops the entries that are no longer needed.
func (t *Table) Due(now lend.Moment) (due []Due) {
	for _, e := range t.schedule.next(now.Mono) {
		switch a, ok := e.due(now); {
		case ok: // the end of the ask plans the next look
			due = append(due, Due{e, a})
		case e.idle(now):
			t.drop(e)
		default:
			e.plan(now)
		}
	}
	return due
}

// drop removes an entry.
func (t *Table) drop(e *Entry) {
	s, id := t.place(e.Rule, e.Key)
	s.mu.Lock()
	if s.entries[id] == e {
		t.remove(s, idEntry{id, e})
	}
	s.mu.Unlock()
}

// plan plans the next look at the entry.
func (e *Entry) plan(now lend.Moment) {
	e.mu.Lock()
	at, gone := e.b.Look(now), e.gone
	e.mu.Unlock()
	if !gone {
		e.schedule.plan(e, at)
	}
}

// minTend is the shortest time between two looks at what is due.
const minTend = 5 * time.Millisecond

// Tend waits until a key comes often. From then on it does something four times in the shortest period of a key, until done
// is closed.
func (t *Table) Tend(done <-chan struct{}, do func()) {
	select {
	case <-t.Used:
	case <-done:
		return
	}
	timer := time.NewTimer(lend.MinPeriod)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			do()
			timer.Reset(max(minTend, t.Period()/4))
		case <-done:
			return
		}
	}
}
