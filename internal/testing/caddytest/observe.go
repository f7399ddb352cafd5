package caddytest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// Logged returns the context of a loaded config, and what it logs from level INFO on.
func Logged(t testing.TB) (caddy.Context, *observer.ObservedLogs) {
	t.Helper()
	log, logs := observed(t)
	return provisionConfig(t, log), logs
}

// observed makes a log, for one config at a time, and returns what is logged to it.
func observed(t testing.TB) (caddy.BaseLog, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.InfoLevel)
	name := t.Name()
	cores.Store(name, core)
	t.Cleanup(func() {
		cores.Delete(name)
		logs.TakeAll() // loggers of Caddy stay, and with them the requests that they have logged
	})
	return caddy.BaseLog{
		WriterRaw: json.RawMessage(`{"output": "discard"}`),
		CoreRaw:   json.RawMessage(fmt.Sprintf(`{"module": "caddytest", "test": %q}`, name)),
	}, logs
}

// cores are the log cores of configs that are being loaded, by test.
var cores sync.Map

// logCore is the module that makes a config write to one of these cores.
type logCore struct {
	zapcore.Core `json:"-"`
	Test         string `json:"test"`
}

func init() { caddy.RegisterModule(new(logCore)) }

// CaddyModule implements [caddy.Module].
func (*logCore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.cores.caddytest", New: func() caddy.Module { return new(logCore) }}
}

// Provision implements [caddy.Provisioner].
func (c *logCore) Provision(caddy.Context) error {
	core, ok := cores.Load(c.Test)
	if !ok {
		return fmt.Errorf("no test %q is loading a config", c.Test)
	}
	c.Core = core.(zapcore.Core)
	return nil
}

// Listener keeps the events that it receives, in order.
type Listener struct{ Events []caddy.Event }

// Handle implements [caddyevents.Handler].
func (l *Listener) Handle(_ context.Context, e caddy.Event) error {
	l.Events = append(l.Events, e)
	return nil
}

// Listen subscribes to an event of a config.
func Listen(t testing.TB, ctx caddy.Context, name string) *Listener {
	t.Helper()
	l := new(Listener)
	if err := app[*caddyevents.App](t, ctx, "events").On(name, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// Scrape returns the limiter's metrics of a config as "name{labels}", without zeros. The
// value of a histogram is how many values it has.
func Scrape(t testing.TB, ctx caddy.Context) map[string]float64 {
	t.Helper()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), "caddy_rate_limit_")
		for _, m := range f.GetMetric() {
			if !ours {
				break
			}
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" { // Prometheus treats an empty label as absent
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
				values[name+"{"+strings.Join(labels, ",")+"}"] = value
			}
		}
	}
	return values
}
