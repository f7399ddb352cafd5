package integration_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// busyLimit is how many requests a key has in each zone of a flood, for longer than the flood takes.
const busyLimit = 5

// busyZones are the kinds of zones that are flooded.
var busyZones = map[string]string{
	"plain":       "algorithm sliding_window_counter 5/10h",
	"overrides":   "algorithm sliding_window_counter 5/10h\noverrides",
	"ban":         "algorithm sliding_window_counter 5/10h\nban 1s after 1000000 refusals in 1h",
	"concurrency": "algorithm concurrency\nevents 5\nlease 1h",
	"queue":       "algorithm leaky_bucket 5/10h\nmode queue\nmax_wait 100ms",
	"max_wait":    "algorithm sliding_window_counter 5/10h\nmax_wait 100ms",
	"lend":        "algorithm token_bucket 5/10h\nlend 100ms",
}

// busyTarget is a Caddy with a zone of each kind, a healthy Redis, and an upstream that counts.
type busyTarget struct {
	*server
	redis  *redistest.Server
	zones  []string
	passed map[string]*atomic.Int64 // by zone
	keys   int
}

func startBusyTarget(t *testing.T, timeout time.Duration, keys int) *busyTarget {
	f := &busyTarget{redis: redistest.Start(t), zones: slices.Sorted(maps.Keys(busyZones)), passed: make(map[string]*atomic.Int64), keys: keys}
	gate := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("X-Key"), "honest") {
			f.passed[strings.TrimPrefix(r.URL.Path, "/")].Add(1)
		}
		if r.Header.Get("X-Hold") != "" {
			<-gate
		}
	}))
	t.Cleanup(func() { close(gate); upstream.Close() })
	var site strings.Builder
	for _, zone := range f.zones {
		f.passed[zone] = new(atomic.Int64)
		fmt.Fprintf(&site, `
			handle /%s {
				rate_limit {
					zone %[1]s {
						key {header.X-Key}
						%s
					}
					store redis {
						address %s
						timeout %s
					}
					on_store_error allow
				}
				reverse_proxy %s
			}`, zone, busyZones[zone], f.redis.Addr(), timeout, upstream.Listener.Addr())
	}
	f.server = startCaddy(t, caddyfile("servers {\nprotocols h1 h2c\n}\nmetrics", `
		handle /metrics {
			metrics
		}`+site.String()))
	return f
}

// use uses up the limit of each key of a zone.
func (f *busyTarget) use(t *testing.T, zone string) {
	t.Helper()
	client := newClient(t, "")
	for k := range f.keys {
		for range busyLimit {
			if zone != "concurrency" {
				_, _ = send(client, f.url("/"+zone), "X-Key", fmt.Sprint(k))
				continue
			}
			before := f.passed[zone].Load()
			go func() { _, _ = send(client, f.url("/"+zone), "X-Key", fmt.Sprint(k), "X-Hold", "1") }()
			patient.Until(t, "a slot to be taken", func() bool { return f.passed[zone].Load() > before })
		}
		patient.Until(t, "a refusal", func() bool {
			a, err := send(client, f.url("/"+zone), "X-Key", fmt.Sprint(k))
			return err == nil && a.status == http.StatusTooManyRequests
		})
	}
}

// errors returns how many requests met an error of the store, by its kind.
func (f *busyTarget) errors(t *testing.T) map[string]int {
	kinds := make(map[string]int)
	for name, n := range nonzero(t, f.scrape(newClient(t, ""))) {
		if strings.HasPrefix(name, "store_errors_total{") {
			kinds[name[strings.Index(name, `kind="`)+6:strings.Index(name, `",store`)]] += int(n)
		}
	}
	return kinds
}

// burst is requests that are written at once, on connections that are open already.
type burst struct {
	conns   []net.Conn
	write   [][]byte
	collect []func() (statuses []int, err error)
}

// startBurst opens the connections. If each is for several requests, they speak HTTP/2.
func (f *busyTarget) startBurst(t *testing.T, zone string, conns, each int) *burst {
	t.Helper()
	b := new(burst)
	for i := range conns {
		conn, err := net.Dial("tcp", f.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patient.Patience))
		b.conns = append(b.conns, conn)
		if each > 1 {
			write, collect := streams(t, conn, "/"+zone, each, func(n int) string { return fmt.Sprint((i*each + n) % f.keys) })
			b.write, b.collect = append(b.write, write), append(b.collect, collect)
			continue
		}
		b.write = append(b.write, fmt.Appendf(nil, "GET /%s HTTP/1.1\r\nHost: a\r\nX-Key: %d\r\n\r\n", zone, i%f.keys))
		b.collect = append(b.collect, func() ([]int, error) {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return nil, err
			}
			return []int{response.StatusCode}, response.Body.Close()
		})
	}
	return b
}

// streams begins HTTP/2, and returns the HEADERS frames of requests, and what reads their answers.
func streams(t *testing.T, conn net.Conn, path string, requests int, key func(int) string) (write []byte, collect func() ([]int, error)) {
	t.Helper()
	var out, head bytes.Buffer
	framer, encoder := http2.NewFramer(&out, nil), hpack.NewEncoder(&head)
	for i := range requests {
		head.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", path}, {"x-key", key(i)}} {
			if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	frames := http2.NewFramer(conn, conn)
	frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), func() (statuses []int, err error) {
		for len(statuses) < requests {
			frame, err := frames.ReadFrame()
			if err != nil {
				return statuses, err
			}
			if response, ok := frame.(*http2.MetaHeadersFrame); ok {
				var status int
				if _, err := fmt.Sscan(response.PseudoValue("status"), &status); err != nil {
					return statuses, err
				}
				statuses = append(statuses, status)
			}
		}
		return statuses, nil
	}
}

// send writes all requests, and returns how often each status came.
func (b *burst) send(t *testing.T, meanwhile func()) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := make(map[int]int)
	for i, conn := range b.conns {
		if _, err := conn.Write(b.write[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, collect := range b.collect {
		all.Go(func() {
			got, err := collect()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			for _, status := range got {
				statuses[status]++
			}
		})
	}
	meanwhile()
	all.Wait()
	return statuses
}

// TestNoClientCausesStoreErrors: a Caddy that does not run for longer than the timeout while requests wait for
// its healthy Redis lets none of them pass beyond the limit. It stands still when the first of 1,000 requests
// has just been asked for, so the others wait, and the answers come while nobody reads them.
func TestNoClientCausesStoreErrors(t *testing.T) {
	patient.BesideOthers(t)
	const timeout = 250 * time.Millisecond
	f := startBusyTarget(t, timeout, 1)
	for _, zone := range f.zones {
		f.use(t, zone)
		b := f.startBurst(t, zone, 8, 125)
		if zone == "plain" {
			time.Sleep(1100 * time.Millisecond) // until the refusal is not answered from memory
		}
		before, calls := f.passed[zone].Load(), scriptCalls(t, f.redis)
		answered := make(chan struct{})
		statuses := b.send(t, func() {
			go func() { // ends in any case
				defer close(answered)
				for end := time.Now().Add(time.Second); scriptCalls(t, f.redis) == calls && time.Now().Before(end); {
				}
			}()
			<-answered
			if err := f.process.Freeze(patient.Patience); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * timeout) // this is what passes while Caddy does not run
			if err := f.process.Thaw(); err != nil {
				t.Error(err)
			}
		})
		passed := f.passed[zone].Load() - before
		t.Logf("%s: %d passed, answers %v, errors of the store %v", zone, passed, statuses, f.errors(t))
		if passed > 0 || statuses[http.StatusOK] > 0 {
			t.Errorf("%s: %d requests passed, want none: the limit was used up", zone, passed)
		}
	}
	for name, waited := range nonzero(t, f.scrape(newClient(t, ""))) {
		if strings.HasPrefix(name, "store_queue_seconds_total{") {
			t.Logf("requests waited in Caddy for %.1f s in all", waited)
			return
		}
	}
	t.Error("no metric says that requests waited in Caddy")
}

// TestFloodsPassNothing floods each kind of zone in many ways, with the default timeout. The limits are used up, so
// nothing may pass. It needs a machine that does nothing else: a Redis that does not run does not answer.
func TestFloodsPassNothing(t *testing.T) {
	if !deep.Run() {
		t.Skip("DEEP=1 runs it")
	}
	for _, keys := range []int{1, 100} {
		f := startBusyTarget(t, 50*time.Millisecond, keys)
		honest := startHonest(t, f)
		for _, zone := range f.zones {
			f.use(t, zone)
			for _, c := range []struct{ conns, each int }{{200, 1}, {1000, 1}, {4000, 1}, {4, 50}, {16, 250}} {
				for range 3 {
					b := f.startBurst(t, zone, c.conns, c.each)
					before, began := f.passed[zone].Load(), time.Now()
					honest.Store(0)
					statuses := b.send(t, func() {})
					passed := f.passed[zone].Load() - before
					t.Logf("%-11s %3d keys, %4d x %3d: %d passed, answers %v within %v, an honest client at most %v", zone, keys, c.conns, c.each,
						passed, statuses, time.Since(began).Round(time.Millisecond), time.Duration(honest.Load()).Round(time.Millisecond))
					if passed > 0 {
						t.Errorf("%s, %d keys, %d x %d: %d requests passed, want none", zone, keys, c.conns, c.each, passed)
					}
					for _, conn := range b.conns {
						conn.Close()
					}
				}
			}
		}
		t.Logf("errors of the store: %v", f.errors(t))
	}
}

// startHonest runs a client that has its limit not used up, and returns the longest time that an answer took.
func startHonest(t *testing.T, f *busyTarget) *atomic.Int64 {
	var longest atomic.Int64
	var all sync.WaitGroup
	end := make(chan struct{})
	client := newClient(t, "")
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			began := time.Now()
			_, _ = send(client, f.url("/overrides"), "X-Key", fmt.Sprint("honest ", i))
			longest.Store(max(longest.Load(), int64(time.Since(began))))
			time.Sleep(10 * time.Millisecond)
		}
	})
	t.Cleanup(func() { close(end); all.Wait() })
	return &longest
}
