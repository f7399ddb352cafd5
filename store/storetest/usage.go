package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// usages tests the sums of what keys use, if the store keeps them. They are by the clock of the machine.
func usages(t *testing.T, open Open) {
	s, _ := open(t)
	keeper, ok := s.(store.UsageKeeper)
	if !ok {
		t.Skip("the store keeps no usage")
	}
	u := &usageBench{TB: t, keeper: keeper, hour: time.Now().Truncate(time.Hour)}
	t.Run("Sums", func(t *testing.T) { u.on(t).sums() })
	t.Run("OnceEach", func(t *testing.T) { u.on(t).onceEach() })
	t.Run("Pages", func(t *testing.T) { u.on(t).pages() })
	t.Run("Over", func(t *testing.T) { u.on(t).over() })
}

type usageBench struct {
	testing.TB
	keeper store.UsageKeeper
	hour   time.Time
}

func (u *usageBench) on(t testing.TB) *usageBench { return &usageBench{t, u.keeper, u.hour} }

// sum returns a sum of a window some hours ago.
func (u *usageBench) sum(zone string, ago int, key string, requests, cost, refused int64) store.Usage {
	from := u.hour.Add(-time.Duration(ago) * time.Hour)
	return store.Usage{Zone: zone, Length: time.Hour, From: from, Until: from.Add(100 * time.Hour), Kind: store.UsageOfKey, Key: key, Requests: requests, Cost: cost, Refused: refused}
}

func (u *usageBench) add(process string, batch int64, sums ...store.Usage) {
	u.Helper()
	if err := u.keeper.AddUsage(context.Background(), process, batch, sums); err != nil {
		u.Fatal(err)
	}
}

// read returns all sums of a zone in the last hours, page by page, as texts.
func (u *usageBench) read(zone string, hours, n int, key *string) (all []string) {
	u.Helper()
	from := u.hour.Add(-time.Duration(hours) * time.Hour)
	q := &store.UsageQuery{Zone: zone, Length: time.Hour, From: from, To: u.hour.Add(time.Hour), Kind: store.UsageOfKey, Key: key}
	last := time.Time{}
	for cursor, pages := "", 0; ; pages++ {
		sums, next, err := u.keeper.ReadUsage(context.Background(), q, cursor, n)
		if err != nil || pages > 10_000 {
			u.Fatal(pages, err)
		}
		for _, s := range sums {
			if s.Zone != zone || s.Length != time.Hour || s.From.Before(last) {
				u.Fatalf("%+v comes after %v", s, last)
			}
			last = s.From
			all = append(all, fmt.Sprintf("%d %c %q %d %d %d", int(u.hour.Sub(s.From).Hours()), s.Kind, s.Key, s.Requests, s.Cost, s.Refused))
		}
		if cursor = next; cursor == "" {
			return all
		}
	}
}

func (u *usageBench) expect(what string, got []string, want ...string) {
	u.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		u.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// sums: numbers of one key and window are added up, from all processes, and keys of any bytes are told apart.
func (u *usageBench) sums() {
	const big = 1 << 52
	odd := "a\nb {} * \x00\xff"
	u.add("one", 1, u.sum("sums", 0, odd, 1, 10, 0), u.sum("sums", 0, "", 1, 1, 0), u.sum("sums", 1, odd, 3, big, 0))
	u.add("two", 1, u.sum("sums", 0, odd, 2, -3, 5), u.sum("sums", 1, odd, 0, big-1, 0), u.sum("other sums", 0, odd, 7, 7, 7))
	rest := u.sum("sums", 0, "", 9, 9, 9)
	rest.Kind = store.UsageOfRest
	u.add("two", 2, rest)
	hour := fmt.Sprintf("0 k %q 3 7 5", odd)
	before := fmt.Sprintf("1 k %q 3 %d 0", odd, int64(2*big-1))
	got := u.read("sums", 5, 100, nil)
	if len(got) != 4 || got[0] != before {
		u.Fatalf("got %q", got)
	}
	for _, want := range []string{hour, `0 k "" 1 1 0`, `0 r "" 9 9 9`} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			u.Errorf("no %s in %q", want, got)
		}
	}
	u.expect("one key", u.read("sums", 5, 100, &odd), before, hour)
	unknown := "unknown"
	u.expect("an unknown key", u.read("sums", 5, 100, &unknown))
	u.expect("another zone", u.read("other sums", 5, 100, &odd), fmt.Sprintf("0 k %q 7 7 7", odd))
	u.expect("no windows", u.read("sums", -1, 100, nil))
}

// onceEach: a batch is added once, however often it is sent, and the numbers of processes are their own.
func (u *usageBench) onceEach() {
	for range 3 {
		u.add("once", 1, u.sum("once", 0, "a", 1, 2, 3), u.sum("once", 0, "b", 1, 0, 0))
	}
	for range 2 {
		u.add("once", 2, u.sum("once", 0, "a", 1, 1, 1))
	}
	u.add("once", 1, u.sum("once", 0, "a", 100, 100, 100))
	u.add("another", 1, u.sum("once", 0, "a", 1, 1, 1))
	a, b := "a", "b"
	u.expect("a", u.read("once", 0, 10, &a), `0 k "a" 3 4 5`)
	u.expect("b", u.read("once", 0, 10, &b), `0 k "b" 1 0 0`)
}

// pages: each sum comes once, however small the pages are, and although sums change and come meanwhile.
func (u *usageBench) pages() {
	const keys = 120
	var batch []store.Usage
	for i := range keys {
		batch = append(batch, u.sum("pages", i%2, fmt.Sprint("key ", i), 1, 1, 0))
	}
	u.add("pages", 1, batch...)
	for _, n := range []int{1, 7, 1000} {
		seen := make(map[string]bool)
		for _, s := range u.read("pages", 3, n, nil) {
			seen[s] = true
		}
		equal(u, fmt.Sprint("sums in pages of ", n), len(seen), keys)
	}
	from := u.hour.Add(-time.Hour)
	q := &store.UsageQuery{Zone: "pages", Length: time.Hour, From: from, To: u.hour.Add(time.Hour)}
	seen, number := make(map[string]int), int64(1)
	for cursor := ""; ; {
		sums, next, err := u.keeper.ReadUsage(context.Background(), q, cursor, 5)
		if err != nil {
			u.Fatal(err)
		}
		for _, s := range sums {
			seen[s.Key]++
		}
		number++
		u.add("pages", number, u.sum("pages", 0, "key 0", 1, 1, 0), u.sum("pages", 1, fmt.Sprint("new ", number), 1, 1, 0))
		if cursor = next; cursor == "" || number > 1000 {
			break
		}
	}
	for i := range keys {
		equal(u, fmt.Sprint("key ", i, " while others come"), seen[fmt.Sprint("key ", i)], 1)
	}
	if _, _, err := u.keeper.ReadUsage(context.Background(), q, "nonsense", 3); err == nil {
		u.Error("a cursor of another store is accepted")
	}
}

// over: a window is forgotten when its time is over.
func (u *usageBench) over() {
	short := u.sum("over", 0, "a", 1, 1, 1)
	short.Until = time.Now().Add(time.Second)
	u.add("over", 1, short, u.sum("over", 1, "a", 2, 2, 2))
	deadline := time.Now().Add(30 * time.Second)
	for len(u.read("over", 1, 10, nil)) > 1 {
		if time.Now().After(deadline) {
			u.Fatal("the window is still there")
		}
		time.Sleep(10 * time.Millisecond)
	}
	u.expect("what is left", u.read("over", 1, 10, nil), `1 k "a" 2 2 2`)
}
