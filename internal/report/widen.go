package report

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Widened reports a decision about a network of which several keys are banned. A dry run, and a network that is spared, have only a
// line.
func (p *Reporter) Widened(z *zone.Zone, of store.Widening) {
	network, until := of.Network.String(), time.Now().Add(of.Left)
	bans := of.Verdict == store.Widened && !z.Widen.DryRun
	if bans && p.Events.wanted(eventNetworkBanned) {
		p.Events.emit(eventNetworkBanned, map[string]any{
			"zone": z.Name, "network": network, "banned": of.Banned, "innocent": of.Passed, "until": until.UTC(),
		})
	}
	if p.Log == LogOff {
		return
	}
	message := logging.NetworkSpared
	fields := []zap.Field{zap.String("zone", z.Name), zap.String("network", network), zap.Int("banned", of.Banned), zap.Int("innocent", of.Passed)}
	if of.Verdict == store.Widened {
		message = logging.NetworkBanned
		fields = append(fields, zap.Time("until", until.UTC()))
	}
	if z.Widen.DryRun {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	p.Logger.Info(message, fields...)
	if bans {
		z.Stats.Bans.Begin(network, stats.Ban{Network: network, Until: until})
		p.banEnds.after(of.Left, p.logEndedBans)
	}
}
