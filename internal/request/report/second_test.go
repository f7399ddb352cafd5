package report

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
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
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// windowOf returns a quota policy with a window.
func windowOf(d time.Duration) *zone.QuotaPolicy {
	return &zone.QuotaPolicy{Window: config.Window{Duration: caddy.Duration(d)}}
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
func refusal(p *Reporter, key string) *limiter.Entry {
	return &limiter.Entry{Check: zone.Check{
		Zone: p.Zones[0], Key: key, Policy: windowOf(time.Hour), Decision: algorithms.Decision{RetryAfter: algorithms.Never},
	}}
}

func request() *http.Request { return httptest.NewRequest(http.MethodGet, "/", nil) }

// told returns how many refusals the lines report, and how many of the lines have details.
func told(logs *observer.ObservedLogs) (requests, details int) {
	for _, line := range logs.All() {
		data := line.ContextMap()
		if _, ok := data["remote_ip"]; ok {
			requests++
			details++
		}
		if more, ok := data["more"].(uint64); ok {
			requests += int(more)
		}
	}
	return requests, details
}

// TestFloodOfKeys: however many keys are refused, a second has one line, and the lines count all requests.
func TestFloodOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := reporterOf(LogFirst)
		const seconds, senders, each = 10, 8, 500
		for second := range seconds {
			var all sync.WaitGroup
			for sender := range senders {
				all.Go(func() {
					f := refusal(p, "")
					for i := range each {
						f.Key = fmt.Sprint(second, sender, i)
						p.refused(request(), f)
					}
				})
			}
			all.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if _, details := told(logs); details != seconds || logs.Len() != seconds {
			t.Errorf("%d lines, %d with details, in %d seconds", logs.Len(), details, seconds)
		}
		p.Close()
		if requests, _ := told(logs); requests != seconds*senders*each || logs.Len() != seconds+1 {
			t.Errorf("%d lines tell of %d requests, want %d", logs.Len(), requests, seconds*senders*each)
		}
	})
}

// TestSeconds: the first refusal has a line at once. The next line, or one at the end of a second without any, says
// how many more there were. No timer runs while there is nothing to tell.
func TestSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := reporterOf(LogFirst)
		p.LogKey = true
		refuse := func(keys ...string) {
			for _, key := range keys {
				p.refused(request(), refusal(p, key))
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		for i, c := range []struct {
			keys []string
			want string // message, key and more of the new line
		}{
			{[]string{"a", "b", "a"}, "rate limit exceeded a <nil>"},
			{[]string{"b"}, "rate limit exceeded b 2"},
			{nil, ""},
			{[]string{"c", "a"}, "rate limit exceeded c <nil>"},
			{nil, "rate limit exceeded again <nil> 1"},
			{nil, ""},
			{[]string{"c"}, "rate limit exceeded c <nil>"},
		} {
			refuse(c.keys...)
			got := ""
			for _, line := range logs.TakeAll() {
				data := line.ContextMap()
				got += fmt.Sprint(line.Message, " ", data["key"], " ", data["more"])
			}
			if got != c.want {
				t.Errorf("second %d: %q, want %q", i, got, c.want)
			}
		}
		time.Sleep(time.Second) // or a timer would be left behind
	})
}

// TestCloseWaits: Close returns when all is told, also what a second that ends at that moment tells.
func TestCloseWaits(t *testing.T) {
	p, _ := reporterOf(LogFirst)
	closed, last := make(chan bool), false
	p.Logger = p.Logger.WithOptions(zap.Hooks(func(zapcore.Entry) error {
		if last {
			return nil
		}
		last = true
		go func() {
			p.Close()
			close(closed)
		}()
		for range 1000 {
			runtime.Gosched()
		}
		select {
		case <-closed:
			t.Error("the line is written after Close")
		default:
		}
		return nil
	}))
	p.counts[0][exceeded].more.Store(5)
	p.endSecond()
	<-closed
}

// ban is the verdict on a request whose refusal begins a ban.
func ban(p *Reporter, key string) *limiter.Verdict {
	v := &limiter.Verdict{Entries: []limiter.Entry{{Check: zone.Check{
		Zone: p.Zones[0], Policy: windowOf(time.Minute), Key: key,
		Decision: algorithms.Decision{Banned: true, BanBegins: true, RetryAfter: time.Hour},
	}}}}
	v.Binding = &v.Entries[0]
	return v
}

// TestNobodyListens: without a log and subscribers, nothing is allocated.
func TestNobodyListens(t *testing.T) {
	p, _ := reporterOf(LogOff)
	r, v := request(), ban(p, "a")
	if n := testing.AllocsPerRun(100, func() { p.Report(r, v) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestFloodOfBans: each ban has its event and its line, up to as many in a second as a flood makes.
func TestFloodOfBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		most := int(ofKind[banned].most)
		for i := range 3 * most {
			p.Report(request(), ban(p, strconv.Itoa(i)))
		}
		p.Close()
		lines, again := logs.FilterMessage("client banned"), logs.FilterMessage("client banned again").All()
		if len(l.Events) != most || lines.Len() != most {
			t.Errorf("%d events and %d lines, want %d", len(l.Events), lines.Len(), most)
		}
		if len(again) != 1 || again[0].ContextMap()["more"] != uint64(2*most) {
			t.Errorf("the others have the lines %v", again)
		}
	})
}

// TestBanIsLogged: the beginning of a ban has a line, whatever refusals of the key were logged. With the log off there is none.
func TestBanIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, log := range []string{LogFirst, LogAll, LogOff} {
			p, logs := reporterOf(log)
			p.LogKey = true
			z := p.Zones[0]
			z.KeyRules = &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Minute}}
			begin := func(key string) {
				v := ban(p, key)
				v.Entries[0].Decision.At = time.Now().UnixMicro()
				v.Entries[0].Decision.RetryAfter = 24 * time.Hour // for the limit, which the ban does not outlast
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
				data["refusals"] != int64(3) || data["remote_ip"] != "192.0.2.1" || data["key"] != "198.51.100.0/24" {
				t.Errorf("the line of a ban has %v", data)
			}
			p.Close()
		}
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
	gone, kept := false, weak.Make(p)
	for range 5 {
		p = nil
		runtime.GC()
		gone = gone || kept.Value() == nil
	}
	if !gone {
		t.Error("a timer keeps the reporter")
	}
}
