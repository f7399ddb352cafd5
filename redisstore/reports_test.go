//go:build deep

package redisstore_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// reporting opens the store of an instance that reports something.
func reporting(t *testing.T, server *redistest.Server, name string) *redisstore.Store {
	t.Helper()
	s := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "p", Instance: name})
	s.Report("{I am "+name+"}", func() string { return "{" + name + " tells all}" })
	return s
}

// look returns the texts of all reports, and whether an instance has left.
func look(t *testing.T, s *redisstore.Store, asks bool) (texts []string, left bool) {
	t.Helper()
	reports, err := s.Look(t.Context(), asks)
	must(t, err)
	for _, r := range reports {
		texts, left = append(texts, r.Text), left || r.Left
	}
	slices.Sort(texts)
	return texts, left
}

// memory reads a figure of INFO memory.
func memory(t *testing.T, server *redistest.Server, name string) int {
	t.Helper()
	n, err := strconv.Atoi(server.Admin().InfoMap(t.Context(), "memory").Item("Memory", name))
	must(t, err)
	return n
}

// TestReports: a process that looks reads the reports of all, with the least rights, and the others hear of it. What others
// have written to the keys is not believed, and does no harm.
func TestReports(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...))
	one, two := reporting(t, server, "one"), reporting(t, server, "two: {x}")
	for _, s := range []*redisstore.Store{one, two} {
		s.Silence()
		s.Beat()
	}
	if texts, _ := look(t, one, false); !slices.Equal(texts, []string{"{I am one}", "{I am two: {x}}"}) {
		t.Errorf("before anybody looks: %q", texts)
	}
	two.Beat()
	look(t, one, true)
	one.Beat()
	if texts, _ := look(t, two, false); !slices.Equal(texts, []string{"{I am two: {x}}", "{one tells all}"}) {
		t.Errorf("while somebody looks: %q", texts)
	}
	two.Beat()
	names := map[string]time.Duration{"rl:looked:{rl:instances}": store.LookLife, "rl:report:{rl:instances}:one": store.ReportLife + 3*store.CountInterval}
	for name, most := range names {
		if ttl := server.Admin().PTTL(t.Context(), name).Val(); ttl <= 0 || ttl > most {
			t.Errorf("%s lives for %v", name, ttl)
		}
	}

	admin, now := server.Admin(), server.Admin().Time(t.Context()).Val().UnixMilli()
	for i := range 500 {
		admin.ZAdd(t.Context(), "rl:instances", redis.Z{Score: float64(now - int64(i)), Member: fmt.Sprint("forged ", i)})
	}
	// Redis would have to copy all of a long text for the script, even if that does not use it.
	const long = 8 << 20
	for _, name := range []string{"report:{rl:instances}:forged%200", "report:{rl:instances}:forged%202"} {
		must(t, admin.SetRange(t.Context(), "rl:"+name, long, "x").Err())
	}
	admin.RPush(t.Context(), "rl:report:{rl:instances}:forged%201", "x")
	before := memory(t, server, "used_memory")
	texts, _ := look(t, one, true)
	if all := slices.DeleteFunc(texts, func(text string) bool { return text == "" }); len(texts) != store.MaxReports || !slices.Equal(all, []string{"{one tells all}", "{two: {x} tells all}"}) {
		t.Errorf("of %d reports, these are read: %.100q", len(texts), all)
	}
	if peak := memory(t, server, "used_memory_peak"); peak > before+long/2 {
		t.Errorf("Redis took %d bytes more for texts of %d", peak-before, long)
	}
	admin.Del(t.Context(), "rl:instances", "rl:looked:{rl:instances}")
	admin.RPush(t.Context(), "rl:instances", "another type")
	admin.RPush(t.Context(), "rl:looked:{rl:instances}", "another type")
	if texts, _ := look(t, one, true); len(texts) > 0 {
		t.Errorf("%q", texts)
	}
	two.Report("I am of another version", func() string { return "I am of another version" })
	two.Beat()
	if texts, _ := look(t, one, true); !slices.Equal(texts, []string{""}) {
		t.Errorf("a text that is no object: %q", texts)
	}
	two.Report("{I am two}", func() string { return "{two: {x} tells all}" })
	for _, s := range []*redisstore.Store{one, two} {
		s.Beat()
	}
	if texts, left := look(t, one, true); left || !slices.Equal(texts, []string{"{one tells all}", "{two: {x} tells all}"}) {
		t.Errorf("again: %q", texts)
	}
	closed(t, reporting(t, server, "one"))
	three := reporting(t, server, "three")
	three.Beat()
	closed(t, three)
	if texts, left := look(t, one, false); !left || len(texts) != 3 {
		t.Errorf("when one has left: %q", texts)
	}
}

// TestReportsWithoutRights: an instance whose user may not use the keys is counted all the same, and says why it sees no
// other.
func TestReportsWithoutRights(t *testing.T) {
	t.Parallel()
	var rights []string
	for _, right := range leastACL(t) {
		if right == "~rl:*" {
			right = "~rl:instances"
		}
		rights = append(rights, right)
	}
	server := redistest.Start(t, redistest.WithUser("limiter", "p", rights...))
	one := reporting(t, server, "one")
	one.Beat()
	if n := server.Admin().ZCard(t.Context(), "rl:instances").Val(); n != 1 {
		t.Errorf("%d instances", n)
	}
	for _, asks := range []bool{false, true} {
		if _, err := one.Look(t.Context(), asks); store.Failure(err) != store.FailureAuth {
			t.Errorf("a look without rights: %v", err)
		}
	}
}

// TestReportsOfAFullRedis: a Redis without room keeps reports, too.
func TestReportsOfAFullRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...))
	one := reporting(t, server, "one")
	one.Beat()
	server.Admin().ConfigSet(t.Context(), "maxmemory", "1")
	look(t, one, true)
	one.Beat()
	if texts, _ := look(t, one, false); !slices.Equal(texts, []string{"{one tells all}"}) {
		t.Errorf("%q", texts)
	}
}

// TestLookThatDoesNotEnd: another program has written that somebody looks forever. No instance reports all.
func TestLookThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...))
	one, key := reporting(t, server, "one"), "rl:looked:{rl:instances}"
	for _, till := range []float64{1, 1e15, math.Inf(1)} {
		server.Admin().ZAdd(t.Context(), key, redis.Z{Score: till, Member: "until"})
		one.Beat()
	}
	server.Admin().Set(t.Context(), key, "x", 0)
	one.Beat()
	if texts, _ := look(t, one, false); !slices.Equal(texts, []string{"{I am one}"}) || one.Instances() != 1 {
		t.Errorf("%q, %d instances", texts, one.Instances())
	}
}
