package caddyratelimit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// flooded is a handler whose zone refuses everybody, with what it logs.
func flooded(t *testing.T, ctx caddy.Context, options string) (*Handler, *observer.ObservedLogs) {
	t.Helper()
	h := provision(t, ctx, `{`+options+`"rate_limits": {"flooded": {"key": "{http.request.header.X-Key}", "max_events": 0, "window": "1h"}}}`)
	core, logs := observer.New(zapcore.InfoLevel)
	h.logger = zap.New(core)
	return h, logs
}

// flood refuses n requests for each of some keys.
func flood(t *testing.T, h *Handler, keys, n int) {
	t.Helper()
	f := oneRefusal(h, "")
	r := request(nil, "203.0.113.7:1")
	for i := range keys * n {
		f.key = strconv.Itoa(i % keys)
		h.note(r, f)
	}
}

// refusedWriter notes the status, and takes less time than a recorder.
type refusedWriter struct {
	header http.Header
	status *int
}

func (w refusedWriter) Header() http.Header         { return w.header }
func (w refusedWriter) WriteHeader(status int)      { *w.status = status }
func (w refusedWriter) Write(b []byte) (int, error) { return len(b), nil }

// TestFloodOfRefusals: what a flood writes depends on its keys, not on its requests.
func TestFloodOfRefusals(t *testing.T) {
	const each = 10
	keys := deep.Steps(1000, 10_000)
	for _, c := range []struct {
		log         string
		least, most int
	}{{logOff, 0, 0}, {logFirst, journalPace, keys}, {logAll, keys * each, keys * each}} {
		start := time.Now()
		h, logs := flooded(t, config(t), `"log": "`+c.log+`", `)
		bare := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := range keys * each {
			w := refusedWriter{http.Header{}, new(int)}
			bare.Header["X-Key"] = []string{strconv.Itoa(i % keys)}
			r := caddyhttp.PrepareRequest(bare, caddy.NewReplacer(), w, new(caddyhttp.Server))
			if err := h.ServeHTTP(w, r, passing); err != nil || *w.status != http.StatusTooManyRequests {
				t.Fatalf("status %d, %v", *w.status, err)
			}
		}
		if c.log == logFirst {
			c.most = mostLines(start)
		}
		n := logs.FilterMessage("rate limit exceeded").Len()
		if n < c.least || n > c.most || logs.Len() != n {
			t.Errorf("log %s: %d lines, %d of them about refusals, want %d to %d", c.log, logs.Len(), n, c.least, c.most)
		}
		h.journal.close()
		last := logs.FilterMessage("rate limit exceeded again").All()
		if c.log != logFirst {
			if len(last) != 0 {
				t.Errorf("log %s: %v", c.log, last)
			}
			continue
		}
		if len(last) != 1 {
			t.Fatalf("want one line with the number of silent ones: %v", last)
		}
		if got := last[0].ContextMap(); got["zone"] != "flooded" || got["requests"] != uint64(keys*each-n) || got["keys"] != uint64(keys) {
			t.Errorf("the silent ones are %v", got)
		}
	}
}

// mostLines is how many lines a handler may write in the time since.
func mostLines(start time.Time) int { return journalPace * (int(time.Since(start)/time.Second) + 2) }

// TestFloodOfKeys: any number of keys takes no more memory than the journal has room for,
// and none of their requests is lost from the count.
func TestFloodOfKeys(t *testing.T) {
	h, _ := flooded(t, config(t), "")
	keys := deep.Steps(300_000, 1_000_000)
	var told, silent atomic.Uint64
	h.logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zapcore.InfoLevel),
		zap.Hooks(func(zapcore.Entry) error { told.Add(1); return nil })) // lines take memory too
	h.journal.silent = func(_ *zone.Zone, _ topic, s silence) { silent.Add(s.requests) }
	before, start := heapInUse(), time.Now()
	flood(t, h, keys, 1)
	if grown := int64(heapInUse()) - int64(before); grown > 8<<20 {
		t.Errorf("%d keys take %d bytes", keys, grown)
	}
	kept := 0
	for i := range h.journal.shards {
		kept += len(h.journal.shards[i].told)
	}
	h.journal.close()
	if told.Load()+silent.Load() != uint64(keys) || kept > journalShards*journalKeys || told.Load() > uint64(mostLines(start)) || told.Load() == 0 {
		t.Errorf("%d keys told of, %d silent, of %d; %d are remembered", told.Load(), silent.Load(), keys, kept)
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWindowsOfTheLog: one line when a window opens, and one when it has closed, of what
// was silent in between.
func TestWindowsOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Log: logFirst}
		z := &zone.Zone{Name: "z"}
		minute := &zone.QuotaPolicy{Numbers: limit.Numbers{Window: limit.Window{Duration: caddy.Duration(time.Minute)}}}
		h.zones = []*zone.Zone{z}
		core, logs := observer.New(zapcore.InfoLevel)
		h.logger = zap.New(core)
		h.journal = newJournal(h.zones, h.logSilent)
		first := func(key string) int {
			n := 0
			for range 5 {
				if h.journal.first(&refusal{zone: z, key: key, grant: minute}) {
					n++
				}
			}
			return n
		}
		if a, b := first("a"), first("b"); a != 1 || b != 1 {
			t.Errorf("in the first window: %d and %d lines, want 1 and 1", a, b)
		}
		time.Sleep(59 * time.Second)
		if n := first("a"); n != 0 || logs.Len() != 0 {
			t.Errorf("59s later: %d lines; %v", n, logs.All())
		}
		time.Sleep(5 * time.Second)
		if logs.Len() != 1 || fmt.Sprint(logs.All()[0].ContextMap()) != "map[keys:2 requests:13 zone:z]" {
			t.Errorf("after the window: %v", logs.All())
		}
		if n := first("a"); n != 1 {
			t.Errorf("in the next window: %d lines, want 1", n)
		}
		time.Sleep(2 * time.Minute) // or a timer would be left behind
		if logs.Len() != 2 {
			t.Errorf("after both windows: %v", logs.All())
		}
	})
}

// TestJournalFromManySides is for the race detector.
func TestJournalFromManySides(t *testing.T) {
	h, _ := flooded(t, config(t), "")
	silent, start := uint64(0), time.Now()
	h.journal.silent = func(_ *zone.Zone, _ topic, s silence) { atomic.AddUint64(&silent, s.requests) }
	var all sync.WaitGroup
	lines := make([]int, 8)
	for i := range lines {
		all.Go(func() {
			for key := range 2000 {
				if h.journal.first(oneRefusal(h, strconv.Itoa(key))) {
					lines[i]++
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for _, n := range lines {
		sum += n
	}
	h.journal.close()
	if uint64(sum)+atomic.LoadUint64(&silent) != 8*2000 || sum < journalPace || sum > mostLines(start) {
		t.Errorf("%d lines for 2000 keys, and %d requests of which there was none", sum, silent)
	}
}
