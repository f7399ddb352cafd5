package lend

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// transitions has, for each event, all that may happen to the three machines of a borrower. What stays as it
// is needs no entry.
var transitions = map[string]string{
	"begin":         "quiet>asking doubtful>asking",
	"end":           "asking>quiet asking>doubtful inForce>givenUp fresh>lent fresh>refusing fresh>scarce lent>refusing lent>scarce refusing>lent refusing>scarce scarce>lent scarce>refusing givenUp>inForce",
	"fail":          "asking>quiet asking>doubtful",
	"void":          "quiet>doubtful inForce>givenUp lent>fresh refusing>fresh scarce>fresh",
	"owes":          "quiet>doubtful inForce>givenUp",
	"refused alone": "fresh>refusing lent>refusing scarce>refusing",
	"time":          "doubtful>quiet",
	"request":       "", // whatever it reserves, spends, gives up or takes back
}

var (
	talkNames = [...]string{"quiet", "asking", "doubtful"}
	holdNames = [...]string{"inForce", "givenUp"}
	modeNames = [...]string{"fresh", "lent", "refusing", "scarce"}
)

// watcher checks what happens to borrowers. Nil watches nothing.
type watcher struct {
	mu   sync.Mutex
	seen map[string]bool
}

// watch checks what an event has done to a borrower.
func (w *watcher) watch(t testing.TB, event, story string, before, after *Borrower, then, now Moment) {
	t.Helper()
	if w == nil {
		return
	}
	allowed, known := transitions[event]
	if !known {
		t.Fatalf("the table has no event %q", event)
	}
	for _, change := range []string{
		talkNames[before.talk(then)] + ">" + talkNames[after.talk(now)],
		holdNames[before.loan.hold] + ">" + holdNames[after.loan.hold],
		modeNames[before.news.mode] + ">" + modeNames[after.news.mode],
	} {
		from, to, _ := strings.Cut(change, ">")
		if from != to && !slices.Contains(strings.Fields(allowed), change) {
			t.Fatalf("%s: %s%s", event, change, story)
		}
		w.mu.Lock()
		w.seen[event+": "+change] = true
		w.mu.Unlock()
	}
	b := after
	switch {
	case event == "begin" && !b.ask.underWay:
		t.Fatalf("no ask is under way after its beginning%s", story)
	case b.loan.reserved < 0:
		t.Fatalf("%d are reserved%s", b.loan.reserved, story)
	case event != "end" && b.loan.limit > before.loan.limit && event != "begin", event == "begin" && b.loan.limit > max(before.loan.limit, b.loan.spent+b.loan.reserved):
		t.Fatalf("%s: the limit of the loan grows from %d to %d%s", event, before.loan.limit, b.loan.limit, story)
	case event == "begin" && (b.ask.Spent != b.loan.spent || b.ask.Live != b.loan.limit-b.loan.spent || b.ask.Live < b.loan.reserved):
		t.Fatalf("spent %d of %d, %d reserved, and the ask says %+v%s", b.loan.spent, b.loan.limit, b.loan.reserved, b.ask.Ask, story)
	case b.loan.spent < b.ask.Spent:
		t.Fatalf("spent %d, less than the %d that the store knows of%s", b.loan.spent, b.ask.Spent, story)
	case b.loan.spent < before.loan.spent && event != "request":
		t.Fatalf("%s: %d spent, %d before%s", event, b.loan.spent, before.loan.spent, story)
	}
}

// scarceOrders goes through answers of all kinds in all orders of three. After each step, an action of an operator may be
// noticed.
func scarceOrders(t *testing.T, w *watcher) {
	answers := map[string]Answer{
		"lends": {Held: 5, Lease: time.Minute.Microseconds()}, "refuses": {}, "has too little": {Pause: -1},
		"has too little for a moment": {Pause: time.Second.Microseconds()},
	}
	for name, a := range answers {
		a.Allowed, a.Quota = name != "refuses", 100
		answers[name] = a
	}
	var visit func(b Borrower, at time.Duration, depth int, story string)
	visit = func(b Borrower, at time.Duration, depth int, story string) {
		if depth == 0 {
			return
		}
		then, now := Moment{at, at}, Moment{at + time.Second, at + time.Second}
		do := func(event, what string, do func(b *Borrower)) Borrower {
			next := b
			do(&next)
			w.watch(t, event, story+", "+what, &b, &next, then, now)
			return next
		}
		do("void", "noticed", func(b *Borrower) { b.Void() })
		if b.Asks() {
			for name, a := range answers {
				a.At = simEpoch + now.Mono.Microseconds()
				visit(do("end", name, func(b *Borrower) { b.End(now, b.ask.Number, a, 0) }), now.Mono, depth-1, story+", "+name)
			}
			return
		}
		visit(do("refused alone", "refused alone", func(b *Borrower) { b.RefusedAlone(0) }), now.Mono, depth-1, story+", refused alone")
		b.Want(now, 3)
		visit(do("begin", "asked", func(b *Borrower) { b.Begin(now, 1) }), now.Mono, depth-1, story+", asked")
	}
	visit(*NewBorrower(1, time.Minute, time.Minute), time.Second, 6, "")
}
