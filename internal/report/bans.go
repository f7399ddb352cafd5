package report

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// bans reports the ban that begins with a refusal, and notes it so that its end is logged too.
func (p *Reporter) bans(r *http.Request, f *limiter.Entry) {
	lines, events := p.wants(banned)
	if !lines && !events {
		return
	}
	lasts := f.BanLasts()
	ban := stats.Ban{
		Key: logging.Key(f.Key), RemoteIP: clientip.Remote(r), ClientIP: clientip.Client(r),
		Until: time.Now().Add(lasts), // by this machine's clock
	}
	beside := []zap.Field{
		zap.Time("until", time.UnixMicro(f.Decision.At).Add(lasts).UTC()),
		zap.Int64("refusals", f.Zone.KeyRules.Ban.After),
	}
	if network := f.Zone.Template.Address(f.Key); network.IsValid() && !network.IsSingleIP() {
		ban.Network = network.String()
		beside = append(beside, zap.String("network", ban.Network))
	}
	p.tell(r, f, banned, beside...)
	if lines {
		f.Zone.Stats.Bans.Begin(f.Key, ban)
		p.banEnds.after(time.Until(ban.Until), p.logEndedBans)
	}
}

// logEndedBans logs the bans that are over, and waits for the next end.
func (p *Reporter) logEndedBans() {
	now := time.Now()
	for _, z := range p.Zones {
		if z.KeyRules == nil || z.KeyRules.Ban == nil {
			continue
		}
		ended, next := z.Stats.Bans.Ended(now)
		for _, ban := range ended {
			p.logEnd(z.Name, &ban)
		}
		if !next.IsZero() {
			p.banEnds.after(next.Sub(now), p.logEndedBans)
		}
	}
}

func (p *Reporter) logEnd(zone string, b *stats.Ban) {
	fields := []zap.Field{
		zap.String("zone", zone), zap.String("remote_ip", b.RemoteIP), zap.String("client_ip", b.ClientIP),
	}
	if b.Network != "" {
		fields = append(fields, zap.String("network", b.Network))
	}
	if p.LogKey {
		fields = append(fields, zap.String("key", b.Key))
	}
	p.Logger.Info(logging.BanEnded, fields...)
}
