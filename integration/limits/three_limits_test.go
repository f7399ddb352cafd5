package limits_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// mainJob is the config of both instances. Its limits are so low that also a slow machine has more requests a second.
// The timeout is long, because this test is not about requests that are let through while Redis is late.
var mainJob = harness.Caddyfile("", `
	rate_limit {
		zone clients {
			key {client_ip}
			events 5
			window 1s
		}
		zone api_keys {
			key {header.X-Api-Key}
			events 10
			window 2s
		}
		zone everyone {
			events 38
			window 500ms
		}
		store redis {
			address {$REDIS}
			timeout 10s
		}
		on_store_error deny
	}
	reverse_proxy {$UPSTREAM} {
		header_up X-Client {client_ip}
	}`)

var mainJobZones = []struct {
	name   string
	limit  int
	window time.Duration
	key    func(r *jobRequest) string
}{
	{"clients", 5, time.Second, func(r *jobRequest) string { return r.client }},
	{"api_keys", 10, 2 * time.Second, func(r *jobRequest) string { return r.key }},
	{"everyone", 38, 500 * time.Millisecond, func(*jobRequest) string { return "" }},
}

// jobRequest is one of the requests, as its client knows it.
type jobRequest struct {
	client, key, path string
	answer            harness.Answer
	zone              string // the zone that refused it
}

// choose picks the client and the key of a request. A quarter of the workers share two addresses
// and meet the limit of clients, a quarter share two keys and meet the limit of keys, and the
// other half spread so widely that only the limit for everyone stops them.
func (r *jobRequest) choose(worker int, random *rand.Rand) {
	const many = 40
	r.client = fmt.Sprintf("127.0.2.%d", 1+random.IntN(many))
	if r.key = fmt.Sprintf("key-%d", random.IntN(many)); r.key == "key-0" {
		r.key = "" // some requests have no key
	}
	switch worker % 4 {
	case 0:
		r.client = fmt.Sprintf("127.0.1.%d", 1+random.IntN(2))
	case 1:
		r.key = fmt.Sprintf("busy-%d", random.IntN(2))
	}
	r.path = [...]string{"/", "/a.txt", "/b/c.txt?q=1"}[random.IntN(3)]
}

// TestThreeLimitsOfTwoInstances is the module's main purpose: two instances, one Redis, three limits on every request,
// and the upstream's own log as the witness.
//
// Redis decided every request at some instant. The instant lies after the client sent the request
// and, if the request was let through, before the upstream had it. So instead of one margin for
// all, each request has its own, and the test asserts only what holds whatever the instants were:
// no window can be shown to have more requests than the limit, and no refusal can be shown to
// have come while there was room.
func TestThreeLimitsOfTwoInstances(t *testing.T) {
	patient.BesideOthers(t)
	const workers = 64
	requests := deep.Steps(6000, 20_000)
	upstream, accessLog := startUpstream(t)
	variables := []string{"REDIS=" + redistest.Start(t).Addr(), "UPSTREAM=" + upstream.Address}
	both := []*harness.Server{harness.StartCaddy(t, mainJob, variables...), harness.StartCaddy(t, mainJob, variables...)}

	began := time.Now()
	sent := runMainJob(t, both, requests, workers)
	elapsed := time.Since(began)
	for _, s := range both {
		s.Sound(t)
	}

	passed, refused := 0, make(map[string]int)
	for i := range sent {
		if sent[i].answer.Status == http.StatusOK {
			passed++
		} else {
			refused[sent[i].zone]++
		}
	}
	t.Logf("%d requests in %v: %d passed, refused %v", requests, elapsed, passed, refused)
	arrivals := readAccessLog(t, accessLog)
	if len(arrivals) != passed {
		t.Errorf("clients saw %d answers of 200, the upstream had %d requests", passed, len(arrivals))
	}
	for _, a := range arrivals {
		r := &sent[a.id]
		if a.client != r.client || a.key != r.key || a.path != r.path || r.answer.Status != http.StatusOK {
			t.Fatalf("the upstream had %+v, the client sent %+v", a, *r)
		}
	}
	for _, zone := range mainJobZones {
		// How many that are depends on how fast they come.
		if share := refused[zone.name] * 100 / requests; refused[zone.name] == 0 || patient.Idle() && share < 5 {
			t.Errorf("zone %s refused %d %%, too few to prove anything", zone.name, share)
		}
		checkZone(t, zone.name, zone.limit, zone.window.Microseconds(), zone.key, sent, arrivals)
	}
}

// startUpstream runs the Caddy behind the others.
func startUpstream(t *testing.T) (s *harness.Server, accessLog string) {
	t.Helper()
	dir := harness.ShortDir(t)
	for file, text := range map[string]string{"index.html": "index", "a.txt": "a", "b/c.txt": "c"} {
		file = filepath.Join(dir, "www", file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accessLog = filepath.Join(dir, "access.log")
	return harness.StartCaddy(t, harness.Caddyfile("", `
		log {
			output file {$LOG} {
				roll_disabled
			}
			format json
		}
		root * {$ROOT}
		file_server`), "LOG="+accessLog, "ROOT="+filepath.Join(dir, "www")), accessLog
}

// runMainJob sends all requests, to both instances in turn, and returns them by id. Every eighth of
// a second, each worker sends four, one after the other: as dense as possible for a moment, and
// over enough windows in all.
func runMainJob(t *testing.T, both []*harness.Server, requests, workers int) []jobRequest {
	t.Helper()
	sent := make([]jobRequest, requests)
	randoms := make([]*rand.Rand, workers)
	for worker := range workers {
		randoms[worker] = rand.New(rand.NewPCG(1, uint64(worker)))
	}
	clients := make(map[string]*http.Client)
	for net, hosts := range map[string]int{"127.0.1.": 2, "127.0.2.": 40} {
		for host := range hosts {
			address := net + strconv.Itoa(1+host)
			clients[address] = harness.NewClient(t, address)
		}
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			burst := time.NewTicker(time.Second / 8)
			defer burst.Stop()
			for n := 1; ; n++ {
				id := int(next.Add(1)) - 1
				if id >= requests || t.Failed() {
					return
				}
				if n%4 == 0 {
					<-burst.C
				}
				r := &sent[id]
				r.choose(worker, randoms[worker])
				if err := r.send(clients[r.client], both[id%len(both)], id); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return sent
}

func (r *jobRequest) send(client *http.Client, s *harness.Server, id int) (err error) {
	header := []string{"X-Request-Id", strconv.Itoa(id)}
	if r.key != "" {
		header = append(header, "X-Api-Key", r.key)
	}
	if r.answer, err = harness.Send(client, s.URL(r.path), header...); err != nil {
		return err
	}
	limit, ok, err := harness.RateLimit(r.answer.Header)
	if err != nil {
		return err
	}
	wait, _ := strconv.Atoi(r.answer.Header.Get("Retry-After"))
	switch r.answer.Status {
	case http.StatusOK:
		if !ok || wait != 0 {
			return fmt.Errorf("an answer of 200 has RateLimit: %v, Retry-After: %d", ok, wait)
		}
	case http.StatusTooManyRequests:
		if r.zone = limit.Zone; !ok || limit.Remaining != 0 || wait < 1 {
			return fmt.Errorf("a refusal has RateLimit %+v, Retry-After: %d", limit, wait)
		}
	default:
		return fmt.Errorf("status %d, want 200 or 429", r.answer.Status)
	}
	return nil
}

// checkZone checks the upstream's log and the refusals against the limit of one zone.
func checkZone(t *testing.T, name string, limit int, window int64, key func(*jobRequest) string, sent []jobRequest, arrivals []arrival) {
	t.Helper()
	events, longest := make(map[string][]span), int64(0)
	for _, a := range arrivals {
		e := span{sent[a.id].answer.Sent.UnixMicro(), a.reached}
		if e.last < e.first-clockError {
			t.Fatalf("request %d was with the upstream %d us before it was sent", a.id, e.first-e.last)
		}
		k := key(&sent[a.id])
		events[k] = append(events[k], e)
		longest = max(longest, e.last-e.first)
	}
	full := 0
	for k, spans := range events {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
		most := mostCertain(spans, window)
		if most > limit {
			t.Errorf("zone %s, key %q: %d passed within one window, the limit is %d", name, k, most, limit)
		}
		if most == limit {
			full++
		}
	}
	refusals, wrong, spare := 0, 0, 0
	for i := range sent {
		if r := &sent[i]; r.zone == name {
			refusals++
			refusal := span{r.answer.Sent.UnixMicro(), r.answer.Done.UnixMicro()}
			possible := mostPossible(events[key(r)], refusal, window, longest)
			if possible < limit {
				wrong++
			}
			spare += possible - limit
		}
	}
	if wrong > 0 {
		t.Errorf("zone %s: %d of %d refusals came while there was room", name, wrong, refusals)
	}
	t.Logf("zone %s: %d keys passed, %d of them certainly up to the limit; %d refusals, %.1f of %d events uncertain on average; longest way to the upstream %v",
		name, len(events), full, refusals, float64(spare)/float64(max(1, refusals)), limit, time.Duration(longest)*time.Microsecond)
}
