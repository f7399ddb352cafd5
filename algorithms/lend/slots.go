package lend

import "time"

// Slots are what a process keeps of one key under a limit of concurrency: slots of requests that have
// ended, for those that come next. The store counts them as taken. So what it admits and what is kept
// never exceed the limit together, and the explorer of the tests goes through all orders.
//
//   - A process keeps at most as many as leave others as much as all processes may keep: half of what is
//     free in all.
//   - A slot that was not needed for a period is given back, and also one that is too much because
//     others have taken what was free.
//   - A slot is used again only while its lease lasts for certain, by both clocks of the machine, counted
//     from when it was asked for or last renewed. A renewal counts only if its answer comes before the
//     lease has ended: the store may have given the slot to another process since.
//
// Slots have no lock: their caller has one.
type Slots struct {
	idle  []Slot
	low   int // the least number of idle slots since the last look
	free  int64
	told  Moment // when free was asked for
	at    int64  // when the store said it, by its clock
	known bool

	voided bool
	after  time.Duration // if voided: what was asked for before does not count any more
}

// Slot is charged in the store under a name.
type Slot struct {
	Name        string
	from, until Moment
}

// NewSlot returns a slot that was asked for at a time.
func NewSlot(name string, sent Moment, lease time.Duration) Slot {
	s := Slot{Name: name}
	s.begin(sent, lease)
	return s
}

func (s *Slot) begin(sent Moment, lease time.Duration) {
	s.from, s.until = sent, sent.plus(lease-lease/Drift-2*time.Microsecond)
}

// lasts reports whether the slot is certainly not given to others for a while.
func (s *Slot) lasts(now Moment, while time.Duration) bool {
	return now.Mono+while < s.until.Mono && now.Wall+while < s.until.Wall && now.Wall >= s.from.Wall
}

// Renewed tells that a renewal, sent at a time, was answered now.
func (s *Slot) Renewed(sent, now Moment, lease time.Duration) {
	if s.lasts(now, 0) {
		s.begin(sent, lease)
	}
}

// Len returns how many slots are kept.
func (s *Slots) Len() int { return len(s.idle) }

// Get returns a slot whose lease lasts for a third of it, in which it is renewed.
func (s *Slots) Get(now Moment, lease time.Duration) (Slot, bool) {
	for i := len(s.idle) - 1; i >= 0; i-- {
		if slot := s.idle[i]; slot.lasts(now, lease/3) && !s.old(slot) {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			s.low = min(s.low, len(s.idle))
			return slot, true
		}
	}
	s.low = 0
	return Slot{}, false
}

// Put puts a slot back that Get has returned, and that was not used.
func (s *Slots) Put(slot Slot) { s.idle = append(s.idle, slot) }

// Keep keeps the slot of a request that has ended, and reports whether it did. Otherwise the slot is to
// be given back.
func (s *Slots) Keep(now Moment, slot Slot, period time.Duration, processes int) bool {
	fresh := s.known && now.Mono-s.told.Mono < 2*period
	if !fresh || !slot.lasts(now, 0) || s.old(slot) || int64(len(s.idle)) >= s.most(processes) {
		return false
	}
	s.idle = append(s.idle, slot)
	return true
}

// old reports whether the store may have forgotten a slot since it was asked for or renewed: then it does not count it.
func (s *Slots) old(slot Slot) bool { return s.voided && slot.from.Mono <= s.after }

// Free returns how many slots were free when the store last told.
func (s *Slots) Free() int64 { return s.free }

// most returns how many slots may be kept: others may keep as many each, and half of all is free.
func (s *Slots) most(processes int) int64 { return s.free / int64(2*max(1, processes)-1) }

// Told tells what the store said is free, when it was asked, and the time on its clock then in microseconds. Of answers to asks that
// overtook each other, on the way or back, the least counts. The clock of the store may have been set back.
func (s *Slots) Told(asked Moment, at, free int64) {
	last := asked.Mono >= s.told.Mono && (at > s.at || at < s.at-setBack)
	switch {
	case asked.Mono < s.after:
	case !s.known || last:
		s.free, s.told, s.at, s.known = free, asked, at, true
	default:
		s.free = min(s.free, free)
	}
}

// Heard returns what Told was told last.
func (s *Slots) Heard() (asked Moment, at, free int64, known bool) {
	return s.told, s.at, s.free, s.known
}

// setBack is by how many microseconds no ask overtakes another one.
const setBack = int64(time.Minute / time.Microsecond)

// Due reports whether the store should be asked what is free.
func (s *Slots) Due(now Moment, period time.Duration) bool {
	return len(s.idle) > 0 && now.Mono-s.told.Mono >= period
}

// Surplus takes out what is to be given back: what no request needed since the last call, what is too
// much, and what may go to others by now. It is called once in a period.
func (s *Slots) Surplus(now Moment, processes int) (back []Slot) {
	kept := s.idle[:0]
	for i, slot := range s.idle {
		if i < s.low || !slot.lasts(now, 0) || int64(len(s.idle)-i) > s.most(processes) {
			back = append(back, slot)
		} else {
			kept = append(kept, slot)
		}
	}
	clear(s.idle[len(kept):])
	s.idle = kept
	s.low = len(kept)
	return back
}

// Void takes all slots out, because other rules may hold for the key, or the store has forgotten it. None is kept until
// the store says what is free, and none that a request has had since before.
func (s *Slots) Void(now Moment) []Slot {
	s.known, s.voided, s.after = false, true, now.Mono
	return s.All()
}

// All takes all slots out.
func (s *Slots) All() []Slot {
	all := s.idle
	s.idle, s.low = nil, 0
	return all
}

// Renewed tells that a renewal of a slot that is kept, sent at a time, was answered now.
func (s *Slots) Renewed(name string, sent, now Moment, lease time.Duration) {
	for i := range s.idle {
		if s.idle[i].Name == name {
			s.idle[i].Renewed(sent, now, lease)
			return
		}
	}
}
