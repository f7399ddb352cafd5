package gate

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// hashed is a hash of a key.
func hashed(key int) uint64 {
	x := uint64(key+1) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// patient has a wait so long that a queue never stands.
var patient = Options{MaxWait: math.MaxInt64}

// bench is a queue with requests of which the test knows what they do.
type bench struct {
	*Gate
	now     int64
	running []*request
	waiting []*request
	before  int // ran at the last check
}

type request struct {
	Place
	key, class int
	granted    bool
	from       *key // with which it has waited
}

// newBench makes a bench. A limit that is not 0 never changes.
func newBench(limit int, o Options) *bench {
	b := &bench{Gate: New(o), now: 1}
	if limit > 0 {
		b.fix(limit)
	}
	return b
}

// fix fixes the limit. It bounds nothing else.
func (b *bench) fix(limit int) {
	b.limit.configure(Options{Min: limit, Max: limit})
}

// ask makes a request, of a key that was served before if it is known.
func (b *bench) ask(key, class int, known bool) *request {
	r := &request{key: key, class: class}
	if known {
		b.seen.add(hashed(key))
	}
	r.Notify = func(granted bool) {
		b.waiting = drop(b.waiting, r)
		if r.granted = granted; granted {
			b.running = append(b.running, r)
		}
	}
	b.waiting = append(b.waiting, r)
	if b.Enter(b.now, &r.Place, hashed(key), class) {
		r.Notify(true)
	}
	return r
}

func (b *bench) done(r *request, a Answer) {
	b.running = drop(b.running, r)
	b.Done(b.now, &r.Place, a)
}

func drop(all []*request, r *request) []*request {
	i := slices.Index(all, r)
	return slices.Delete(slices.Clone(all), i, i+1)
}

// check checks what must hold after each event.
func (b *bench) check(t interface{ Fatalf(string, ...any) }, lowest, highest int) {
	n := b.limit.n
	switch {
	case n < lowest || highest > 0 && n > highest:
		t.Fatalf("the limit is %d, want %d to %d", n, lowest, highest)
	case b.Gate.running != len(b.running) || b.Gate.waiting != len(b.waiting):
		t.Fatalf("%d run and %d wait, want %d and %d", b.Gate.running, b.Gate.waiting, len(b.running), len(b.waiting))
	case b.Gate.running > 2*n && b.Gate.running > b.before || highest > 0 && b.Gate.running > max(highest, b.before):
		t.Fatalf("%d run, and were %d, at a limit of %d", b.Gate.running, b.before, n)
	}
	b.before = b.Gate.running
	in := 0
	for _, c := range b.classes {
		in += c.Running + c.Waiting
		for i, k := range c.order {
			if len(k.waiting) == 0 || i > 0 && k.Before(c.order[(i-1)/2]) {
				t.Fatalf("the heap has key %d at %d, of which %d wait", k.id, i, len(k.waiting))
			}
		}
		if len(c.order) > 0 && b.fits(b.first(c).key) {
			t.Fatalf("%d wait, and %d of %d run", b.Gate.waiting, b.Gate.running, n)
		}
	}
	if in != b.Gate.running+b.Gate.waiting {
		t.Fatalf("the classes have %d requests, want %d", in, b.Gate.running+b.Gate.waiting)
	}
}

// rank is the order of a key.
type rank struct {
	running int
	had     float64
}

// ranks returns those of all keys of which requests wait, once a request has left, to which its slot is charged.
func (b *bench) ranks(leaving *Place) map[*key]rank {
	all := make(map[*key]rank)
	for _, c := range b.classes {
		for _, k := range c.order {
			r := rank{k.running, k.had}
			if k == leaving.key {
				r.running--
				r.had += float64(b.now - leaving.began)
			}
			all[k] = r
		}
	}
	return all
}

// turnOf checks that a request which has just got a slot was the one whose turn it was.
func (b *bench) turnOf(t interface{ Fatalf(string, ...any) }, r *request, all map[*key]rank) {
	mine, ok := all[r.from]
	if !ok {
		return // it has waited with the newcomers, and its key is known meanwhile
	}
	for k, other := range all {
		if k.class != r.from.class || k == b.classes[k.class].newcomers {
			continue
		}
		if other.running < mine.running || other.running == mine.running && other.had < mine.had-1e-3 {
			t.Fatalf("%+v was served while %+v waited", mine, other)
		}
	}
}

// TestQueue: whatever clients do, as many run as the limit lets and never more, nothing waits while a slot
// is free for it, and no key waits while one is served of which more requests run, or that has had more.
func TestQueue(t *testing.T) {
	deep.Property(t, 1, func(t *rapid.T) {
		lowest, highest := rapid.IntRange(1, 3).Draw(t, "min"), rapid.IntRange(0, 12).Draw(t, "max")
		if highest > 0 {
			highest = max(highest, lowest)
		}
		o := Options{Min: lowest, Max: highest, MaxWait: 1e9, Classes: 2}
		b := newBench(0, o)
		stepGen, keyGen := rapid.IntRange(0, 9), rapid.IntRange(0, 20)
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			b.now += rapid.Int64Range(0, 50e6).Draw(t, "ns")
			b.event(t, stepGen.Draw(t, "event"), keyGen.Draw(t, "key"))
			b.check(t, lowest, highest)
		}
		for len(b.running) > 0 {
			b.now += 1e6
			b.done(b.running[0], Useful)
			b.check(t, lowest, highest)
		}
		if b.Gate.waiting > 0 {
			t.Fatalf("%d wait for ever", b.Gate.waiting)
		}
	})
}

// event is an arrival, an answer, or a client that leaves.
func (b *bench) event(t interface{ Fatalf(string, ...any) }, event, key int) {
	switch {
	case event < 5:
		b.ask(key, key%2, false)
	case event < 9 && len(b.running) > 0:
		before := len(b.running)
		leaving := b.running[key%before]
		all := b.ranks(&leaving.Place)
		for _, r := range b.waiting {
			r.from = r.Place.key
		}
		b.done(leaving, Answer(event%3))
		if len(b.running) == before { // exactly one got the slot
			b.turnOf(t, b.running[before-1], all)
		}
	case len(b.waiting) > 0:
		r := b.waiting[key%len(b.waiting)]
		b.waiting = drop(b.waiting, r)
		for range 2 {
			if b.Leave(b.now, &r.Place) || r.state != outside {
				t.Fatalf("a waiting request cannot leave")
			}
		}
	}
}

// TestNoKeyStarves: a known key that waits gets a turn in 2 x (waiting keys + 1) turns, whatever new keys come.
func TestNoKeyStarves(t *testing.T) {
	const keys = 20
	b := newBench(1, Options{})
	fresh := 1000
	b.ask(fresh, 0, false)
	for k := range keys {
		b.ask(k, 0, true)
		b.ask(k, 0, true)
	}
	last := make(map[int]int)
	for turn := range 3000 {
		b.now += 1e6
		for range 3 {
			fresh++
			b.ask(fresh, 0, false)
		}
		r := b.running[0]
		if r.key < keys {
			b.ask(r.key, 0, true)
			if before, ok := last[r.key]; ok && turn-before > 2*(keys+1) {
				t.Fatalf("key %d waited for %d turns", r.key, turn-before)
			}
			last[r.key] = turn
			b.done(r, Useful)
		} else {
			b.done(r, Left)
		}
	}
	if len(last) != keys {
		t.Errorf("%d of %d keys were served", len(last), keys)
	}
}

// TestOldKeyBesideNewOnes: a key that comes all the time is served, although ever new keys, each known, take all
// slots that there are.
func TestOldKeyBesideNewOnes(t *testing.T) {
	const waiting = 50
	b := newBench(1, patient)
	b.ask(0, 0, true)
	b.ask(1, 0, true)
	var queue []*request
	gap := 0
	for i := range 20000 {
		b.now += 1e6
		queue = append(queue, b.ask(1000+i, 0, true))
		if len(queue) > waiting { // its longest wait is over
			if r := queue[0]; r.state == waits {
				b.waiting = drop(b.waiting, r)
				b.Leave(b.now, &r.Place)
			}
			queue = queue[1:]
		}
		r := b.running[0]
		if gap++; r.key == 1 {
			b.ask(1, 0, true)
			gap = 0
		}
		if gap > 2*(waiting+5) {
			t.Fatalf("the key has waited for %d turns", gap)
		}
		b.done(r, Useful)
	}
}

// TestClasses: classes share by their weights, however many keys each has.
func TestClasses(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	b := newBench(4, Options{MaxWait: math.MaxInt64, Classes: 2})
	ask := func(class int) {
		key := 1
		if class == 1 {
			key = 100 + rnd.Intn(500)
		}
		b.ask(key, class, true)
	}
	for range 300 {
		ask(0)
		ask(1)
	}
	var served [2]int
	for range 20000 {
		b.now += 1e5
		r := b.running[0]
		served[r.class]++
		ask(r.class)
		b.done(r, Useful)
	}
	if f := float64(served[0]) / float64(served[1]); f < 9 || f > 11 {
		t.Errorf("the classes shared %.2f to 1, want 10 to 1", f)
	}
}

// TestNewestFirst: the oldest request of a key goes first, and the newest once the queue was never empty
// for half of the longest wait. Beyond its places, the oldest makes room.
func TestNewestFirst(t *testing.T) {
	b := newBench(1, Options{MaxWait: 1e9})
	first := b.ask(1, 0, true)
	old, young := b.ask(1, 0, true), b.ask(1, 0, true)
	b.now += 4e8
	b.done(first, Useful)
	if !old.granted || young.granted {
		t.Fatal("the newest was served at first")
	}
	newest := b.ask(1, 0, true)
	b.now += 2e8
	b.done(old, Useful)
	if !newest.granted || young.granted {
		t.Fatal("the oldest was served although the queue stands")
	}
	for range places/2 + 1 {
		b.ask(1, 0, true)
	}
	if (young.state == waits) || young.granted || b.Gate.waiting > places {
		t.Errorf("the oldest waits: %v, of %d", (young.state == waits), b.Gate.waiting)
	}
}

// TestOver: a key is over if it asks for more than twice its share.
func TestOver(t *testing.T) {
	b := newBench(2, patient)
	b.ask(9, 0, true)
	b.ask(9, 0, true)
	var polite, hog *request
	for k := range 4 {
		polite = b.ask(k, 0, true)
	}
	for range 12 {
		hog = b.ask(8, 0, true)
	}
	for want, r := range map[bool]*request{true: hog, false: polite} {
		if over, _ := b.Refuse(b.now, &r.Place, 0); over != want {
			t.Errorf("%v for a key that asks for more than its share: %v", over, want)
		}
	}
}
