//go:build deep

package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// reporting opens the store of an instance that announces and reports something.
func reporting(t *testing.T, server *redistest.Server, name string) *redisstore.Store {
	t.Helper()
	s := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "p", Instance: name})
	s.Announce("I am " + name)
	s.Report(func(wish string) string { return fmt.Sprint(name, " hears ", wish) })
	return s
}

// awaitReports looks until the reports of all instances are those of the names, with the wish.
func awaitReports(t *testing.T, s *redisstore.Store, wish string, names ...string) {
	t.Helper()
	patient.Until(t, "reports of "+strings.Join(names, ", "), func() bool {
		reports, err := s.Look(t.Context(), wish)
		if err != nil {
			t.Log(err)
		}
		found := make(map[string]bool)
		for _, r := range reports {
			found[r.Process] = r.Lives && r.Text == fmt.Sprint(r.Process, " hears ", wish) && r.Age >= 0 && !r.Written.IsZero()
		}
		for _, name := range names {
			if !found[name] {
				return false
			}
		}
		return len(reports) == len(names)
	})
}

// memory reads a figure of INFO memory.
func memory(t *testing.T, server *redistest.Server, name string) int {
	t.Helper()
	text, err := server.Admin().Info(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(text, "\n"+name+":")
	value, _, _ = strings.Cut(value, "\r")
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestBoard: a process that looks reads the reports of all, with the least rights, and the others hear the wish. What others
// have written to the keys is not believed, and does no harm.
func TestBoard(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...))
	one, two := reporting(t, server, "one"), reporting(t, server, "two: {x}")
	one.Beat()
	two.Beat()
	if n := commands(t, server)["zrangebyscore"]; n > 0 {
		t.Errorf("reports are read %d times, although nobody looks", n)
	}
	awaitReports(t, one, "well?", "one", "two: {x}")
	for _, name := range []string{"rl:looked:{rl:instances}", "rl:wished:{rl:instances}", "rl:reporters:{rl:instances}", "rl:report:{rl:instances}:one"} {
		if ttl := server.Admin().PTTL(t.Context(), name).Val(); ttl <= 0 || ttl > store.ReportLife {
			t.Errorf("%s lives for %v", name, ttl)
		}
	}
	awaitReports(t, two, "and now?", "one", "two: {x}")

	admin := server.Admin()
	for i := range 500 {
		admin.ZAdd(t.Context(), "rl:reporters:{rl:instances}", redis.Z{Score: float64(admin.Time(t.Context()).Val().UnixMilli() + 60_000), Member: fmt.Sprint("forged ", i)})
	}
	// Redis would have to copy all of a long text for the script, even if that does not use it.
	const long = 8 << 20
	for _, name := range []string{"report:{rl:instances}:forged%200", "report:{rl:instances}:forged%202", "wished:{rl:instances}"} {
		if err := admin.SetRange(t.Context(), "rl:"+name, long, "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	admin.RPush(t.Context(), "rl:report:{rl:instances}:forged%201", "x")
	before := memory(t, server, "used_memory")
	patient.Until(t, "the forged names", func() bool {
		reports, err := one.Look(t.Context(), "")
		if err != nil {
			t.Log(err) // the machine may be busy
		}
		for _, r := range reports {
			if strings.HasPrefix(r.Process, "forged") && r.Text != "" {
				t.Fatalf("a forged report is read: %.100q", r.Text)
			}
		}
		return len(reports) == store.MaxReports
	})
	if peak := memory(t, server, "used_memory_peak"); peak > before+long/2 {
		t.Errorf("Redis took %d bytes more for texts of %d", peak-before, long)
	}
	admin.Del(t.Context(), "rl:reporters:{rl:instances}")
	admin.RPush(t.Context(), "rl:reporters:{rl:instances}", "another type")
	awaitReports(t, one, "again", "one", "two: {x}")

	closed(t, two)
	patient.Until(t, "two to have left", func() bool {
		reports, err := one.Look(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range reports {
			if r.Process == "two: {x}" && r.Left {
				return true
			}
		}
		return false
	})
}

// TestBoardWithoutRights: an instance whose user may not use the keys is counted all the same, and says why it sees no
// other.
func TestBoardWithoutRights(t *testing.T) {
	t.Parallel()
	var rights []string
	for _, right := range leastACL(t) {
		if right == "~rl:*" {
			rights = append(rights, "~rl:instances", "~rl:{*", "~rl:announced:*")
			continue
		}
		rights = append(rights, right)
	}
	server := redistest.Start(t, redistest.WithUser("limiter", "p", rights...))
	one := reporting(t, server, "one")
	one.Beat()
	one.Beat()
	if texts, err := one.Announcements(t.Context(), 10); err != nil || len(texts) != 1 {
		t.Errorf("%q, %v", texts, err)
	}
	if _, err := one.Look(t.Context(), ""); store.Failure(err) != store.FailureAuth {
		t.Errorf("a look without rights: %v", err)
	}
}

// TestLookThatDoesNotEnd: another program has written that somebody looks forever. No instance reports.
func TestLookThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...))
	one := reporting(t, server, "one")
	for _, value := range []string{"x", "1", "99999999999999999"} {
		server.Admin().Set(t.Context(), "rl:looked:{rl:instances}", value, 0)
		one.Beat()
	}
	server.Admin().Del(t.Context(), "rl:looked:{rl:instances}")
	server.Admin().RPush(t.Context(), "rl:looked:{rl:instances}", "x")
	one.Beat()
	if n := commands(t, server)["zrangebyscore"]; n > 0 || one.Instances() != 1 {
		t.Errorf("reports are read %d times, %d instances", n, one.Instances())
	}
}
