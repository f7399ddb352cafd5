package loans

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// at returns a moment.
func at(d time.Duration) lend.Moment { return lend.Moment{Mono: d, Wall: d} }

// borrowed returns a table with an entry that holds so much until a time after the first second.
func borrowed(t *testing.T, f *fleet, held int64, lasts time.Duration) *Entry {
	t.Helper()
	e := f.tables[0].Make(f.rule, "0", 1, at(time.Second))
	ask, ok := e.Begin(at(time.Second), &one, false)
	if !ok {
		t.Fatal("no ask")
	}
	e.End(at(time.Second), ask.Number, lend.Answer{
		Decision: algorithms.Decision{Allowed: true, Quota: 100, Remaining: 50, At: f.micros()}, Held: held, Lease: lasts.Microseconds(),
	}, 0, 0)
	return e
}

// TestFind: a key has an entry from the request on that shows that it comes often, and keys that come
// rarely have none, however many there are.
func TestFind(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 0)
	table := f.tables[0]
	for i := range 3 * often {
		now := at(time.Second + time.Duration(i)*time.Millisecond)
		if e, _ := table.Find(f.rule, "often", 1, now); (e != nil) != (i >= often-1) {
			t.Errorf("request %d: %v", i, e)
		}
		if e, lent := table.Find(f.rule, strconv.Itoa(i), 1, now); e != nil || lent {
			t.Errorf("a key that came once: %v, %t", e, lent)
		}
	}
	// With these gaps, never enough come in the longest time between two asks.
	gap := f.rule.LongestLend() / (often - 2)
	for i := range 5 * often {
		if e, _ := table.Find(f.rule, "rare", 1, at(time.Minute+time.Duration(i)*gap)); e != nil {
			t.Fatalf("request %d of a rare key: %v", i, e)
		}
	}
	if n := table.Size(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	if e, known := table.Make(f.rule, "often", 1, at(time.Second)), table.Known(f.rule, "often"); e != known {
		t.Errorf("made %v, known %v", e, known)
	}
}

// TestFindAlone: the only process borrows a key sooner, until there is another.
func TestFindAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 0)
	table := f.tables[0]
	for processes, want := range map[int64]int{1: oftenAlone, 2: often} {
		table.CountProcesses(processes)
		for i := range want {
			e, _ := table.Find(f.rule, strconv.FormatInt(processes, 10), 1, at(time.Second))
			if (e != nil) != (i == want-1) {
				t.Errorf("request %d with %d processes: %v", i, processes, e)
			}
		}
	}
}

// TestFindLent: a key that others have parts of is borrowed at once, and it is known that it has none
// left as soon as the store says so.
func TestFindLent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 0)
	table, now := f.tables[0], at(time.Second)
	table.Lent(f.rule, "k", true, now)
	if e, lent := table.Find(f.rule, "k", 1, now); e != nil || !lent {
		t.Errorf("a key that is lent: %v, %t", e, lent)
	}
	table.Lent(f.rule, "k", false, now)
	if e, lent := table.Find(f.rule, "k", 1, now); e != nil || lent {
		t.Errorf("a key that is no longer lent: %v, %t", e, lent)
	}
	e := table.FindLent(f.rule, "k", 1, now)
	if e == nil {
		t.Fatal("it is not borrowed")
	}
	if again := table.FindLent(f.rule, "k", 1, now); again != nil {
		t.Error("a loan that one request in a long time would use")
	}
	if _, ok := e.Begin(now, &one, false); !ok || table.FindLent(f.rule, "k", 1, now) != e {
		t.Error("a key that is being borrowed")
	}
}

// TestSameHash: a key with the hash of another has no entry, and not the other's.
func TestSameHash(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 0)
	table, now := f.tables[0], at(time.Second)
	e := table.Make(f.rule, "k", 1, now)
	e.Key = "another" // as if it had been made for that
	if known, made := table.Known(f.rule, "k"), table.Make(f.rule, "k", 1, now); known != nil || made != nil {
		t.Errorf("known %v, made %v", known, made)
	}
	for range 2 * often {
		if e, _ := table.Find(f.rule, "k", 1, now); e != nil {
			t.Fatalf("found %v", e)
		}
	}
}

// TestFullTable: a table has a bounded number of entries, and drops those that are no longer needed.
func TestFullTable(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 0)
	table, none := f.tables[0], 0
	for i := range 2 * shards * maxPerShard {
		if table.Make(f.rule, strconv.Itoa(i), 1, at(time.Second)) == nil {
			none++
		}
	}
	if n := table.Size(); n > shards*maxPerShard || n+none != 2*shards*maxPerShard {
		t.Errorf("%d entries, %d keys without", n, none)
	}
	if due := table.Due(at(time.Second + 2*f.rule.LongestLend())); len(due) > 0 || table.Size() > 0 {
		t.Errorf("later there are %d entries, %d asks are due", table.Size(), len(due))
	}
}

// TestRoomForFrequentKeys: however many keys come just often enough, those that come much more often are borrowed.
func TestRoomForFrequentKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 0)
	table, now := f.tables[0], at(time.Second)
	come := func(key string, times int) (e *Entry) {
		for range times {
			e, _ = table.Find(f.rule, key, 1, now)
		}
		return e
	}
	for i := range 2 * shards * maxPerShard {
		come("rare "+strconv.Itoa(i), often)
		if i%4 == 0 {
			table.FindLent(f.rule, "elsewhere "+strconv.Itoa(i), 1, now)
		}
	}
	if n, most := table.Size(), shards*(maxPerShard-lastRoom); n < shards*maxPerShard/2 || n > most {
		t.Errorf("%d entries, want at most %d", n, most)
	}
	for i := range shards {
		if key := "frequent " + strconv.Itoa(i); come(key, 16*often) == nil {
			t.Errorf("%s has no entry", key)
		}
	}
}

// TestTake: what is held is spent until nothing is left or the loan ends, and what is left is told.
func TestTake(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	e := borrowed(t, f, 3, time.Second)
	var d algorithms.Decision
	for left := range 2 {
		if !e.SpendNow(at(time.Second), 1, &d) || !d.Allowed || d.Remaining != int64(52-left) {
			t.Errorf("%+v", d)
		}
	}
	if held, keys := f.tables[0].Held(at(time.Second)); held["z"] != 1 || keys["z"] != 1 {
		t.Errorf("%v held of %v keys", held, keys)
	}
	if e.SpendNow(at(time.Second), 2, &d) {
		t.Error("more was spent than is held")
	}
	if e.SpendNow(at(2*time.Second), 1, &d) {
		t.Error("a loan that is over was spent")
	}
	if !e.SpendNow(at(time.Second+time.Millisecond), 1, &d) || e.SpendNow(at(time.Second+time.Millisecond), 1, &d) {
		t.Error("the last one")
	}
}

// TestAskUnderWay: there is one ask at a time, and requests can wait for its end.
func TestAskUnderWay(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	now := at(time.Second)
	e := f.tables[0].Make(f.rule, "0", 1, now)
	ask, _ := e.Begin(now, &one, false)
	if _, ok := e.Begin(now, &one, false); ok {
		t.Error("a second ask")
	}
	var d algorithms.Decision
	next, over := e.Next(now, &one, 0, &d)
	if next != lend.Wait {
		t.Fatalf("%d, want %d", next, lend.Wait)
	}
	e.Fail(now, ask.Number, true)
	<-over
	if next, _ := e.Next(now, &one, 0, &d); next != lend.Begin {
		t.Errorf("%d, want %d", next, lend.Begin)
	}
}

// TestForgetAndGiveBack: what is held is given back once, and of a key that was reset nothing is spent
// any more.
func TestForgetAndGiveBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	borrowed(t, f, 5, 10*time.Second)
	now := at(2 * time.Second)
	due, busy := f.tables[0].GiveBack(now)
	if len(due) != 1 || len(busy) != 0 || due[0].Ask.Spent != 0 || due[0].Ask.Live != 0 || due[0].Ask.Want != 0 {
		t.Fatalf("%+v", due)
	}
	again, busy := f.tables[0].GiveBack(now)
	if len(again) != 0 || len(busy) != 1 {
		t.Fatalf("%+v, %d asks are under way", again, len(busy))
	}
	due[0].End(now, due[0].Ask.Number, lend.Answer{}, 0, 0)
	<-busy[0]
	e := borrowed(t, f, 5, 10*time.Second)
	f.tables[0].Forget("another zone", "0")
	f.tables[0].Forget("z", "1")
	var d algorithms.Decision
	if !e.SpendNow(at(time.Second), 1, &d) {
		t.Error("another key or zone was meant")
	}
	f.tables[0].Forget("z", "0")
	if e.SpendNow(at(time.Second), 1, &d) || f.tables[0].Known(f.rule, "0") != nil {
		t.Error("the key was reset")
	}
}

// TestRefund: what was spent and not reported can be taken back, and nothing else.
func TestRefund(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	e := borrowed(t, f, 3, 10*time.Second)
	var d algorithms.Decision
	now := at(2 * time.Second)
	if !e.SpendNow(now, 2, &d) || e.Refund(now, d.At, 3) || !e.Refund(now, d.At, 2) || e.Refund(now, d.At, 1) {
		t.Error("refunds of what was spent")
	}
	charged := d.At
	if e.ChargedAlone(charged, d.Remaining); !e.SpendNow(now, 2, &d) || e.Refund(now, charged, 1) {
		t.Error("what the store has charged by itself must not come back from the loan")
	}
	if !e.Refund(now, d.At, 1) {
		t.Error("what was spent at the same instant must come back")
	}
}

// TestRefundOfASpentLoan: what comes back to a loan of which all was spent is returned before the loan ends, though no
// request comes: what a loan holds counts as spent then.
func TestRefundOfASpentLoan(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 1)
	table, longest := f.tables[0], f.rule.LongestLend()
	e := borrowed(t, f, 3, 10*longest)
	var d algorithms.Decision
	if !e.SpendNow(at(2*time.Second), 3, &d) {
		t.Fatal("not spent")
	}
	now := 2*time.Second + longest
	if due := table.Due(at(now)); len(due) > 0 {
		t.Fatalf("nothing is left of a loan that is due: %+v", due)
	}
	if !e.Refund(at(now), d.At, 1) {
		t.Fatal("not refunded")
	}
	due := table.Due(at(now + f.rule.Lend()))
	if len(due) != 1 || due[0].Ask.Spent != 2 {
		t.Errorf("due: %+v, want what was spent", due)
	}
}
