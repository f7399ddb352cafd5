package trouble_test

import (
	"fmt"
	"strings"
)

// lateCost is what a response may add to the cost of its request.
const lateCost = 2

// account is what the test knows of a client of a zone. Numbers are costs, where nothing else is said.
type account struct {
	*cell
	client string
	ruled  bool // Redis knows the client's override, if there is one
	held   []*begun
	book   []string // what happened to the client
	share  []int64  // what the share of each instance has let pass

	// What Redis's state should have: sum, or up to down less, or up to up more. After a comparison, it is what
	// Redis says, unless parts are lent.
	sum, down, up int64
	lateSum       int64 // all late costs since Redis has forgotten
	eaten         bool  // refunds of what Redis has forgotten may have used up those that come now
	loose         bool  // an instance may have spent what Redis has forgotten

	// What Redis may let pass: passed is at most room, back and extra.
	room, passed, back, extra int64

	// Since the latest comparison.
	turning       int64 // passed while the fault began
	late, refunds int64 // what responses have changed
	open          int   // how many changes the next fault may catch on their way
	lossable      int   // how many changes may be lost
	mayLack       int   // the same so far, where parts are lent
	least         int64 // the smallest cost that Redis has refused, 0 for none
	seen          bool  // Redis had a state then
}

// whole is how much Redis lets the client use.
func (a *account) whole() int64 {
	if !a.ruled {
		return a.limit
	}
	return a.allowed(a.client)
}

// delays reports whether responses decide what requests of the zone cost.
func (c *cell) delays() bool { return c.special == "late" || c.special == "refund" }

// category is how [cell.deciders] calls the client.
func (a *account) category() string {
	switch {
	case a.ruled && !counted(a.client):
		return a.client
	case a.room <= 0 && a.extra == 0 && !a.lends && !a.slots && a.special != "refund":
		return "used up"
	case a.seen:
		return "known"
	}
	return "fresh"
}

// judged returns what is wrong with the answer to a request that began and ended in these moments.
func (s *storm) judged(a *account, start, now moment, x answer) string {
	if start != now || now.stage != steady {
		return a.judge(false, s.timed || start != now || now.stage != quiet, x, promise{})
	}
	p, ok := a.deciders(now.fault, a.category())
	if !ok {
		return "nothing is promised"
	}
	if policy, _ := a.policyDecides(); s.timed {
		redis := p.redis
		p = policy(p)
		p.redis = redis
	}
	p.redis = p.redis || a.client == "exempt" && a.policy == "allow" // which no answer tells apart
	// The client may have used up its limit, or have got its state, a moment ago.
	switch now.fault.class {
	case full, unwritable:
		p.refused = true
		p.redis = p.redis || now.fault.class == full && a.fixed && !a.seen
	case unanswered, forgotten:
		p.refused = a.lends || a.remember
	}
	return a.judge(true, false, x, p)
}

// noted books the answer to a request.
func (s *storm) noted(b *begun, start moment, x answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := b.account, s.moment()
	b.forgets = s.forgets
	s.totals.requests++
	a.book = append(a.book, fmt.Sprintf("%d-%d: instance %d, cost %d, passed %v by %s", start.number, now.number, b.instance+1, b.cost, x.passed, x.by))
	if text := s.judged(a, start, now, x); text != "" {
		s.fail(a, "%s: %+v", text, x)
	}
	if x.passed {
		s.totals.passed[x.by] += b.cost
	}
	switch {
	case x.by == byRedis && x.passed:
		s.passed(b, start, now)
	case x.by == byRedis:
		if a.least == 0 || b.cost < a.least {
			a.least = b.cost
		}
	case x.by == byShare && x.passed:
		if a.share[b.instance] += b.cost; a.share[b.instance] > a.cell.share {
			s.fail(a, "instance %d let %d pass by its share, which is %d", b.instance+1, a.share[b.instance], a.cell.share)
		}
	}
	// "A request whose answer was lost may have been charged." A slot is given back.
	if x.by != byRedis && !a.slots && (s.timed || start.doubt() || now.doubt()) {
		a.up += b.cost
	}
}

// passed books a request that Redis has let pass.
func (s *storm) passed(b *begun, start, now moment) {
	a := b.account
	if start.number <= s.forgotten { // which Redis has forgotten
		b.forgets = s.forgets - 1
		if !a.lends {
			return
		}
	}
	a.sum += b.cost
	a.passed += b.cost
	switch {
	case now.stage == turning:
		a.turning += b.cost
		b.behind = now.fault.class == moved
	case start.number <= s.moved: // the new master may not know of it
		a.down += b.cost
		a.extra += b.cost
		b.behind = true
	}
	if now.stage != turning || now.fault.class != moved {
		s.within(a)
	}
}

// within demands that no more has passed than may pass.
func (s *storm) within(a *account) {
	if a.client != "exempt" && a.passed > a.room+a.back+a.extra {
		s.fail(a, "Redis let %d pass, of %d that were free, %d that came back, and %d that the faults allow", a.passed, a.room, a.back, a.extra)
	}
}

func (m moment) doubt() bool { return m.fault != nil && m.fault.doubt }

func (s *storm) fail(a *account, format string, args ...any) {
	s.t.Helper()
	now := s.moment()
	name := "no fault"
	if now.fault != nil {
		name = now.fault.name
	}
	s.t.Errorf("%s, %s: %s (moment %d, stage %d of %s)\n%s", a.zone, a.client, fmt.Sprintf(format, args...), now.number, now.stage, name, strings.Join(a.book, "\n"))
}

// corrected books what a response is about to change.
func (s *storm) corrected(b *begun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := b.account, s.moment()
	a.book = append(a.book, fmt.Sprintf("%d: a response changes %d by %s", now.number, b.cost, b.by))
	late, forgotten := a.special == "late", b.forgets < s.forgets
	switch {
	case b.by == byShare && !late:
		a.share[b.instance] -= b.cost
		return
	case b.by != byRedis, a.slots && forgotten:
		return
	case late && forgotten:
		a.up += lateCost
	case late:
		a.sum += lateCost
	case forgotten:
		a.down += b.cost
	default:
		a.sum -= b.cost
	}
	a.eaten = a.eaten || !a.slots && (forgotten || b.behind)
	if !late && (a.eaten || b.behind) { // it may find nothing to give back
		a.up += b.cost
	}
	if late {
		a.late += lateCost
		a.lateSum += lateCost
	} else {
		a.refunds += b.cost
		a.back += b.cost
	}
	if a.slots { // each has a name, so none is lost
		return
	}
	s.totals.corrections++
	switch f := now.fault; {
	case s.timed:
		a.lossable++
	case f == nil:
		a.open++
	case !f.doubt, f.silent() && now.stage != turning: // "It is sent again only if it certainly was not carried out."
	default:
		a.lossable++
	}
}

// silent reports whether instances know during the fault that Redis does not answer.
func (f *fault) silent() bool { return f.class == unanswered || f.class == forgotten }

// happened books what the beginning of a fault means for what has passed before.
func (s *storm) happened(fault *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment()
	switch fault.class {
	case forgotten:
		s.forgets++
		s.forgotten, s.forgot = now.number, true
	case moved:
		s.moved, s.forgot = now.number, true
	}
	for _, c := range s.cells {
		for _, a := range s.accounts[c] {
			switch fault.class {
			case forgotten:
				a.forget()
			case moved: // "what was not yet copied", and with lend what was lent, because the report may be lost
				a.down += a.turning + a.late + s.lendable(a)
				a.up += a.refunds
				a.extra += a.turning + s.lendable(a)
			}
			if fault.doubt {
				a.lossable += a.open
			}
			a.open, a.turning = 0, 0
			s.within(a)
		}
	}
}

// forget books that Redis has forgotten all: "it allows the limit once more". Changes that are on their way
// may find nothing that they change, or the state of what passes next.
func (a *account) forget() {
	a.ruled, a.seen, a.least = false, false, 0
	a.sum, a.up, a.down = 0, a.late, a.refunds
	a.room, a.passed, a.back, a.extra = a.limit, 0, a.refunds, 0
	a.lateSum = a.late
	if a.slots {
		a.down, a.back = 0, 0
	}
	a.eaten = a.refunds > 0 && !a.slots
	if a.lends {
		a.extra, a.loose = a.limit, true // "what was lent before is spent"
	}
}

// lendable is how much the instances can have borrowed for a client: each "at most half of what is free".
func (s *storm) lendable(a *account) int64 {
	if !a.lends {
		return 0
	}
	return a.limit - a.limit>>len(s.stores)
}

// lent is what instances hold of a zone.
func (s *storm) lent(c *cell) (all int64) {
	for i := range s.stores {
		all += s.stats(i).Lent[c.zone]
	}
	return all
}
