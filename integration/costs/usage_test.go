package costs_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// used is what a key has used, by the client or by the sums.
type used struct{ Requests, Cost, Refused int64 }

// usageSite sums what the value of a query parameter uses. What is not answered with 200 costs nothing.
func usageSite(events int, store string) string {
	return harness.Caddyfile("grace_period 5s", `
		rate_limit {
			zone api {
				key         {query.client}
				algorithm   fixed_window
				rate        `+strconv.Itoa(events)+`/1000h
				cost        {header.X-Cost} 1
				cost_header X-Tokens-Used
				charge      on_response {
					status 200
				}
				usage       1h
			}
			`+store+`
		}
		reverse_proxy {$UPSTREAM}`)
}

// bill is what clients count.
type bill struct {
	mu  sync.Mutex
	all map[string]used
}

func (b *bill) add(client string, n used) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.all[client]
	b.all[client] = used{sum.Requests + n.Requests, sum.Cost + n.Cost, sum.Refused + n.Refused}
}

// send sends a request of a client, and notes what it should be billed.
func (b *bill) send(t *testing.T, s *harness.Server, client *http.Client, key string, cost, says, status int64) {
	header := []string{"X-Cost", fmt.Sprint(cost), "X-Status", fmt.Sprint(status)}
	if says >= 0 {
		header = append(header, "X-Use", fmt.Sprint(says))
	}
	a, err := harness.SendAcross(client, s.URL("/?client="+url.QueryEscape(key)), header...)
	if err != nil {
		t.Error(err)
		return
	}
	n := used{Requests: 1, Cost: cost}
	switch {
	case a.Status == http.StatusTooManyRequests:
		n = used{Refused: 1}
	case int64(a.Status) != status:
		t.Errorf("status %d, want %d", a.Status, status)
	case status != http.StatusOK:
		n.Cost = 0
	case says >= 0:
		n.Cost = says
	}
	b.add(key, n)
}

// usage reads the sums with the command, by key. A line that is none ends the test.
func usage(s *harness.Server, args ...string) map[string]used {
	s.T.Helper()
	text, err := s.RateLimit(append([]string{"usage"}, args...)...)
	if err != nil {
		s.T.Fatal(err, text)
	}
	sums := make(map[string]used)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var line struct {
			Zone, Key, Kind string
			used
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Zone != "api" {
			s.T.Fatalf("%v: %s", err, lines.Text())
		}
		sum := sums[line.Kind+line.Key] // over the windows
		sums[line.Kind+line.Key] = used{sum.Requests + line.Requests, sum.Cost + line.Cost, sum.Refused + line.Refused}
	}
	return sums
}

// expect waits until the sums are what the clients have counted.
func (b *bill) expect(t *testing.T, s *harness.Server, args ...string) {
	t.Helper()
	var got map[string]used
	defer func() {
		if t.Failed() {
			t.Errorf("the sums are %v, the clients have counted %v", got, b.all)
		}
	}()
	patient.Until(t, "sums that are what clients have counted", func() bool {
		got = usage(s, args...)
		return maps.Equal(got, b.all)
	})
}

// TestUsageOfAFleet: three instances sum what clients use who send at the same time, with costs that their responses change
// and take back, over a reload, a reset and the end of an instance. The sums are what the clients have counted.
func TestUsageOfAFleet(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	config := usageSite(300, harness.Redis(r.Addr()))
	var fleet []*harness.Server
	for range 3 {
		fleet = append(fleet, harness.StartCaddy(t, config, b.Variable()))
	}
	bill := &bill{all: make(map[string]used)}
	round := func(instances []*harness.Server, each int) {
		var clients sync.WaitGroup
		for i, key := range []string{"a", "b\n{}\"<>", "", "ä \x7f", "e"} {
			clients.Go(func() {
				client, random := harness.NewClient(t, ""), rand.New(rand.NewPCG(uint64(i), 1))
				for range each {
					says, status := random.Int64N(20)-5, int64(http.StatusOK)
					if random.IntN(4) == 0 {
						status = http.StatusNotFound
					}
					bill.send(t, instances[random.IntN(len(instances))], client, key, random.Int64N(10), max(says, -1), status)
				}
			})
		}
		clients.Wait()
	}
	round(fleet, 80)
	bill.expect(t, fleet[1])

	var traffic sync.WaitGroup
	traffic.Go(func() { round(fleet, 40) })
	fleet[0].MustLoad(strings.ReplaceAll(config, "rate        300", "rate        301"))
	fleet[0].MustLoad(config)
	fleet[2].Must("DELETE", "/rate_limit/zones/api/key?key=a", "")
	traffic.Wait()
	bill.expect(t, fleet[0], "api")
	if bill.all["a"].Refused == 0 {
		t.Errorf("no request was refused: %v", bill.all)
	}

	round(fleet[2:], 10)
	fleet[2].Stop()
	if got := usage(fleet[0]); !maps.Equal(got, bill.all) {
		t.Errorf("after the end of an instance, the sums are %v, the clients have counted %v", got, bill.all)
	}
	if got := usage(fleet[0], "api", "e"); len(got) != 1 || got["e"] != bill.all["e"] {
		t.Errorf("of one key: %v", got)
	}
	if got := usage(fleet[0], "--to", "48h"); len(got) != 0 {
		t.Errorf("before: %v", got)
	}
}

// TestUsageInFaults: an outage of Redis loses nothing, and an instance that is killed no more than it had not sent.
func TestUsageInFaults(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allow", "local"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t, redistest.WithPersistence())
			b := harness.StartBackend(t, harness.AnswerAsAsked)
			config := usageSite(1_000_000, "store redis {\naddress "+r.Addr()+"\n"+harness.Timeout()+"\n}\non_store_error "+policy+"\n")
			s, other := harness.StartCaddy(t, config, b.Variable()), harness.StartCaddy(t, config, b.Variable())
			client, bill := harness.NewClient(t, ""), &bill{all: make(map[string]used)}
			says := int64(7)
			some := func(n int) {
				for i := range n {
					bill.send(t, s, client, fmt.Sprint("client ", i%7), 3, says, http.StatusOK)
				}
			}
			some(50)
			r.Kill()
			if policy == "allow" {
				says = -1 // what is not decided is not settled
			}
			some(50)
			s.MustLoad(strings.ReplaceAll(config, "1000000", "1000001"))
			some(50)
			r.Restart()
			bill.expect(t, other)

			before := maps.Clone(bill.all)
			some(50)
			if err := s.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for key, got := range usage(other) {
				if got.Requests < before[key].Requests || got.Requests > bill.all[key].Requests || got.Cost < before[key].Cost || got.Cost > bill.all[key].Cost {
					t.Errorf("%s: the sums are %v, want %v to %v", key, got, before[key], bill.all[key])
				}
			}
		})
	}
}
