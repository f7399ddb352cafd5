package report

import (
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// bans reports the bans that begin with a request, in all of its zones. In a dry run no ban holds.
// What other refusals of the key were reported does not matter: the store tells each ban once.
func (p *Reporter) bans(r *http.Request, v *limiter.Verdict) {
	for i := range v.Enforced {
		if !v.Decisions[i].BanBegins {
			continue
		}
		emits := p.Events.Wanted(eventBanned)
		if !emits && p.Log == LogOff {
			continue
		}
		f := v.Refusal(i)
		if !p.dedup.first(&f, categoryOf(&f)|banCategory) {
			continue
		}
		until := time.UnixMicro(f.Decision.At).Add(f.BanLasts()).UTC()
		if emits {
			data := p.eventData(r, &f)
			data["until"] = until
			p.Events.Emit(eventBanned, data)
		}
		if p.Log != LogOff {
			p.logBan(r, &f, until)
		}
	}
}

// logBan logs that a ban begins, and notes it so that its end is logged too.
func (p *Reporter) logBan(r *http.Request, f *limiter.Refusal, until time.Time) {
	ban := stats.Ban{
		Key: logging.Key(f.Key), RemoteIP: clientip.Remote(r), ClientIP: clientip.Client(r),
		Until: time.Now().Add(f.BanLasts()), // by this machine's clock
	}
	if network := f.Zone.Template.Address(f.Key); network.IsValid() && !network.IsSingleIP() {
		ban.Network = network.String()
	}
	fields := []zap.Field{zap.String("zone", f.Zone.Name), zap.Time("until", until), zap.Int64("refusals", f.Zone.KeyRules.Ban.After)}
	p.Logger.Info(logging.Banned, append(fields, p.whoWasBanned(&ban)...)...)
	f.Zone.Stats.Bans.Begin(f.Key, ban)
	p.banEnds.after(time.Until(ban.Until), p.logEndedBans)
}

func (p *Reporter) whoWasBanned(b *stats.Ban) []zap.Field {
	var fields []zap.Field
	if b.Key != "" { // else no client has sent a request that began the ban
		fields = append(fields, zap.String("remote_ip", b.RemoteIP), zap.String("client_ip", b.ClientIP))
	}
	if b.Network != "" {
		fields = append(fields, zap.String("network", b.Network))
	}
	if p.LogKey && b.Key != "" {
		fields = append(fields, zap.String("key", b.Key))
	}
	return fields
}

// logEndedBans logs the bans that are over, and waits for the next end.
func (p *Reporter) logEndedBans() {
	now := time.Now()
	for _, z := range p.Zones {
		if !bansKeys(z) {
			continue
		}
		ended, next := z.Stats.Bans.Ended(now)
		for _, ban := range ended {
			p.Logger.Info(logging.BanEnded, append([]zap.Field{zap.String("zone", z.Name)}, p.whoWasBanned(&ban)...)...)
		}
		if !next.IsZero() {
			p.banEnds.after(next.Sub(now), p.logEndedBans)
		}
	}
}

func bansKeys(z *zone.Zone) bool { return z.KeyRules != nil && z.KeyRules.Ban != nil }

// timer is one timer for the first of several times.
type timer struct {
	mu     sync.Mutex
	timer  *time.Timer
	at     time.Time
	closed bool
}

// after calls do when a time has passed, unless it is to be called earlier anyway.
func (t *timer) after(d time.Duration, do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now().Add(d)
	if t.closed || t.timer != nil && !t.at.After(at) {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.at = at
	t.timer = time.AfterFunc(d, func() {
		t.mu.Lock()
		t.timer = nil
		t.mu.Unlock()
		do()
	})
}

// close stops the timer for good.
func (t *timer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
