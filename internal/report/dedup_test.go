package report

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/events"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// windowOf returns a quota policy with a window.
func windowOf(d time.Duration) *zone.QuotaPolicy {
	return &zone.QuotaPolicy{Numbers: config.Numbers{Window: config.Window{Duration: caddy.Duration(d)}}}
}

// reporterOf returns a Reporter of one zone, and what it logs.
func reporterOf(log string) (*Reporter, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.InfoLevel)
	template, err := key.New("{http.vars.client_ip}", 24, 48)
	if err != nil {
		panic(err)
	}
	z := &zone.Zone{Place: zone.Place{Name: "flooded"}, Template: template, KeyRules: &store.KeyRules{Ban: &store.Ban{For: time.Hour}}, Exceeded: errors.New("exceeded"), Stats: new(stats.Counters)}
	return New(Config{Zones: []*zone.Zone{z}, Log: log, Logger: zap.New(core)}), logs
}

// refusal returns a refusal of the reporter's zone for a key.
func refusal(p *Reporter, key string) *limiter.Refusal {
	return &limiter.Refusal{
		Zone: p.Zones[0], Key: key, Policy: windowOf(time.Hour), Err: p.Zones[0].Exceeded,
		Decision: algorithms.Decision{RetryAfter: algorithms.Never},
	}
}

func request() *http.Request { return httptest.NewRequest(http.MethodGet, "/", nil) }

// mostLines is how many lines a Reporter may write in the time since start.
func mostLines(start time.Time) int {
	return reportsPerSecond * (int(time.Since(start)/time.Second) + 2)
}

// TestFloodOfKeys: memory is bounded however many keys there are, and all of their requests are
// counted.
func TestFloodOfKeys(t *testing.T) {
	p, _ := reporterOf(LogFirst)
	keys := deep.Steps(300_000, 1_000_000)
	var reported, summed atomic.Uint64
	p.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zapcore.InfoLevel),
		zap.Hooks(func(zapcore.Entry) error { reported.Add(1); return nil })) // because log lines take memory too
	p.dedup.summary = func(_ *zone.Zone, _ category, s suppressed) { summed.Add(s.requests) }
	r, f := request(), refusal(p, "")
	before, start := heapInUse(), time.Now()
	for i := range keys {
		f.Key = strconv.Itoa(i)
		p.refused(r, f)
	}
	if grown := int64(heapInUse()) - int64(before); grown > 8<<20 {
		t.Errorf("%d keys take %d bytes", keys, grown)
	}
	kept := 0
	for i := range p.dedup.shards {
		kept += len(p.dedup.shards[i].reported)
	}
	p.Close()
	n := reported.Load()
	if n+summed.Load() != uint64(keys) || kept > dedupShards*shardKeys || n > uint64(mostLines(start)) || n == 0 {
		t.Errorf("of %d keys, %d are reported and %d summed up; %d are remembered", keys, n, summed.Load(), kept)
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWindowsOfTheLog: one line when a window opens, and one when it has closed, about what was
// suppressed in between.
func TestWindowsOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := reporterOf(LogFirst)
		f := refusal(p, "")
		f.Policy = windowOf(time.Minute)
		first := func(key string) int {
			n := 0
			for range 5 {
				if f.Key = key; p.dedup.first(f, 0) {
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
		if logs.Len() != 1 || fmt.Sprint(logs.All()[0].ContextMap()) != "map[keys:2 requests:13 zone:flooded]" {
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

// banned is the verdict on a request whose refusal begins a ban.
func banned(p *Reporter, key string) *limiter.Verdict {
	return &limiter.Verdict{
		Entries:   []limiter.Entry{{Zone: p.Zones[0], Policy: windowOf(time.Minute)}},
		Checks:    []store.Check{{Key: key}},
		Decisions: []algorithms.Decision{{Banned: true, BanBegins: true, RetryAfter: time.Hour}},
		Enforced:  1, Refused: true,
	}
}

// TestNobodyListens: without a log and subscribers, nothing is allocated.
func TestNobodyListens(t *testing.T) {
	p, _ := reporterOf(LogOff)
	r, v := request(), banned(p, "a")
	if n := testing.AllocsPerRun(100, func() { p.Report(r, v) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestFloodOfBans: keys that were not seen before make no events and lines at their rate, and the
// bans without a line are counted.
func TestFloodOfBans(t *testing.T) {
	ctx := caddytest.Config(t)
	p, logs := reporterOf(LogFirst)
	var err error
	if p.Events, err = events.New(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Events.Handle(ctx, caddy.Event{}); err != nil { // all apps have started
		t.Fatal(err)
	}
	l := caddytest.Listen(t, ctx, "rate_limit_banned")
	r := request()
	const keys = 2 * dedupShards * shardKeys
	for i := range keys {
		p.bans(r, banned(p, strconv.Itoa(i)))
	}
	n := len(l.Events)
	if n < dedupShards*shardKeys/2 || n > dedupShards*shardKeys {
		t.Errorf("%d events, want at most %d", n, dedupShards*shardKeys)
	}
	p.Close()
	if lines := logs.FilterMessage("client banned").Len(); lines != n {
		t.Errorf("%d lines for %d events", lines, n)
	}
	rest := uint64(0)
	for _, line := range logs.FilterMessage("client banned again").All() {
		rest += line.ContextMap()["requests"].(uint64)
	}
	if rest != uint64(keys-n) {
		t.Errorf("%d bans are summed up, want %d", rest, keys-n)
	}
}

// TestBanIsLogged: the beginning of a ban and its end have a line each, whatever refusals of the
// key were logged, and also if another config runs when the ban ends. With the log off there is none.
func TestBanIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, log := range []string{LogFirst, LogAll, LogOff} {
			p, logs := reporterOf(log)
			p.LogKey = true
			z := p.Zones[0]
			z.KeyRules = &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Minute}}
			begin := func(key string) {
				v := banned(p, key)
				v.Decisions[0].At = time.Now().UnixMicro()
				v.Decisions[0].RetryAfter = 24 * time.Hour // for the limit, which the ban does not outlast
				p.Report(request(), v)
			}
			began := time.Now().UTC()
			begin("198.51.100.0/24")
			time.Sleep(time.Minute)
			begin("b")
			lines := logs.FilterMessage("client banned").All()
			if log == LogOff {
				if p.Close(); logs.Len() != 0 {
					t.Errorf("log off: %v", logs.All())
				}
				continue
			}
			if len(lines) != 2 {
				t.Fatalf("log %s: %d lines about 2 bans: %v", log, len(lines), logs.All())
			}
			data := lines[0].ContextMap()
			if until, _ := data["until"].(time.Time); !until.Equal(began.Add(time.Hour)) || data["zone"] != "flooded" ||
				data["refusals"] != int64(3) || data["remote_ip"] != "192.0.2.1" || data["key"] != "198.51.100.0/24" || data["network"] != data["key"] {
				t.Errorf("the line of a ban has %v", data)
			}
			ended := func() int {
				synctest.Wait()
				return logs.FilterMessage("ban ended").Len()
			}
			time.Sleep(59*time.Minute - time.Second)
			before := ended()
			time.Sleep(time.Second)
			if before != 0 || ended() != 1 {
				t.Errorf("log %s: %d lines before the end of the first ban, %d after", log, before, ended())
			}
			p.Close() // and a config follows
			next := New(p.Config)
			time.Sleep(time.Minute)
			if n := ended(); n != 2 || logs.FilterMessage("ban ended").All()[1].ContextMap()["key"] != "b" {
				t.Errorf("log %s: %d lines after both bans: %v", log, n, logs.All())
			}
			next.Close()
		}
	})
}

// TestUnbannedBeforeTheEnd: a ban that an operator has ended does not end once more.
func TestUnbannedBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := reporterOf(LogFirst)
		p.Zones[0].KeyRules = &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Minute}}
		p.Report(request(), banned(p, "a"))
		if !p.Zones[0].Stats.Bans.End("a") || p.Zones[0].Stats.Bans.End("a") {
			t.Error("the ban is not known once")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := logs.FilterMessage("ban ended").Len(); n != 0 {
			t.Errorf("%d lines about the end of a ban that was ended before", n)
		}
		p.Close()
	})
}

// TestNothingOutlivesReporter: a refusal of a request that outlives its config keeps nothing of it.
func TestNothingOutlivesReporter(t *testing.T) {
	p, _ := reporterOf(LogFirst)
	p.refused(request(), refusal(p, "before"))
	p.Close()
	for range 3 {
		p.refused(request(), refusal(p, "after"))
	}
	for i := range p.dedup.shards {
		if p.dedup.shards[i].reported != nil {
			t.Fatal("a window is left, for which the reporter stays")
		}
	}
	gone, kept := false, weak.Make(p)
	for range 5 {
		p = nil
		runtime.GC()
		gone = gone || kept.Value() == nil
	}
	if !gone {
		t.Error("the timer of the next sweep keeps the reporter")
	}
}
