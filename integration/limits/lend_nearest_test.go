package limits_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestLoanIsNotTheLimit: a zone is not the nearest, or near its limit, because little of it is lent to an
// instance. The header, the stream and the admin API show what is left of the limit.
func TestLoanIsNotTheLimit(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 2} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			t.Parallel()
			store := "store redis {\naddress " + redistest.Start(t).Addr() + "\n" + harness.Timeout() + "\n}\n"
			config := harness.Caddyfile("", "handle / {\nrate_limit {\nzone lent {\nevents 5000\nwindow 1h\nlend 100ms\n}\nzone client {\nevents 40\nwindow 1h\n}\n"+store+"}\nrespond ok\n}\n"+
				harness.Limited("alone", "events 5000\nwindow 1h\nlend 100ms", store, "respond ok"))
			f := &nearestFleet{T: t, client: harness.NewClient(t, "")}
			for range instances {
				s := harness.StartCaddy(t, config)
				f.caddys, f.streams = append(f.caddys, s), append(f.streams, bufio.NewScanner(s.Stream("?zone=lent&rate=1000")))
			}
			f.nearest()
			f.near()
			f.alone()
		})
	}
}

type nearestFleet struct {
	*testing.T
	caddys  []*harness.Server
	streams []*bufio.Scanner
	client  *http.Client
}

// nearest sends 300 requests, of which 40 pass.
func (f *nearestFleet) nearest() {
	for i := range 300 {
		s := f.caddys[i%len(f.caddys)]
		a := s.Get(f.client, "/")
		q, ok, err := harness.RateLimit(a.Header)
		if want := max(0, 39-int64(i)); !ok || err != nil || q.Zone != "client" || q.Remaining != want || (a.Status == http.StatusOK) != (i < 40) {
			f.Fatalf("request %d: status %d, RateLimit %+v, %v, want client with %d left", i, a.Status, q, err, want)
		}
		if i >= 40 {
			continue
		}
		// What others have been lent counts as used.
		least := 5000 - int64(i+1)
		if len(f.caddys) > 1 {
			least -= 4 * int64(i+1)
		}
		if d, ok := harness.NextDecision(f.T, f.streams[i%len(f.caddys)]); !ok || d.Decision.Remaining < least || d.Decision.Remaining > 5000-int64(i+1)/int64(len(f.caddys)) {
			f.Fatalf("request %d: the stream shows %+v, want %d of 5000 left", i, d.Decision, least)
		}
		if i != 19 {
			continue
		}
		var k adminapi.Key
		if s.Ask("/rate_limit/zones/lent/key", &k); k.Remaining < 4880 || k.Remaining > 4980 || k.Remaining+k.Lent < 4980 {
			f.Errorf("after 20 requests %d are left and %d lent", k.Remaining, k.Lent)
		}
	}
}

// near checks which requests were counted as near a limit.
func (f *nearestFleet) near() {
	near := make(map[string]uint64)
	for _, s := range f.caddys {
		var zones []adminapi.Zone
		s.Ask("/rate_limit/zones", &zones)
		for _, z := range zones {
			near[z.Name] += z.NearLimit
		}
	}
	if near["lent"] != 0 || near["client"] != 9 {
		f.Errorf("%d requests were near the limit of lent, want 0, and %d near that of client, want 9", near["lent"], near["client"])
	}
}

// alone sends requests that only meet a zone which lends. Their headers tell what is left of the limit, less what
// others have been lent, and what they have spent since is not known.
func (f *nearestFleet) alone() {
	before := f.spared()
	for i := range 300 {
		a := f.caddys[i%len(f.caddys)].Get(f.client, "/alone")
		q, ok, err := harness.RateLimit(a.Header)
		least, most := 5000-int64(i+1), 5000-int64(i/len(f.caddys)+1)
		if len(f.caddys) > 1 {
			least -= 4 * int64(i+1)
		}
		if !ok || err != nil || a.Status != http.StatusOK || q.Remaining < least || q.Remaining > most || q.Next < 3000 {
			f.Fatalf("request %d: status %d, RateLimit %+v, %v, want %d to %d left for almost an hour", i, a.Status, q, err, least, most)
		}
	}
	if spared := f.spared() - before; spared < 250 {
		f.Errorf("%g of 300 answers were of what is lent", spared)
	}
}

// spared returns how many requests the instances have decided by what is lent to them.
func (f *nearestFleet) spared() (n float64) {
	for _, s := range f.caddys {
		metrics, err := s.Admin("GET", "/metrics", "", "")
		if err != nil {
			f.Fatal(err)
		}
		for name, value := range harness.Nonzero(f.T, metrics) {
			if strings.HasPrefix(name, "store_lent_decisions_total") {
				n += value
			}
		}
	}
	return n
}
