package adaptive

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("caddy_rate_limit_adaptive_"+name, help, append([]string{"name"}, labels...), nil)
}

// No label has a value that a client can choose.
var (
	descLimit   = desc("limit", "Requests that may run at once.")
	descLatency = desc("slot_seconds", "Seconds for which a slot is taken, on average.")
	descRunning = desc("running", "Requests that hold a slot, by class.", "class")
	descWaiting = desc("waiting", "Requests that wait for a slot, by class.", "class")
	descRefused = desc("refused_total", "Requests that got no slot, because none was free in time or their clients have left, by class.", "class")
	descWait    = desc("wait_seconds", "Seconds for which requests have waited for a slot, by class, whether they got it or not.", "class")
	descAnswers = desc("answers_total", "Requests that have had a slot, by class and by their end.", "class", "end")
	descTaken   = desc("slot_seconds_total", "Seconds for which requests have had slots, by class and by their end.", "class", "end")
)

// Describe implements [prometheus.Collector]. It tells nothing before Collect, as there are no handlers yet.
func (a *App) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(a, to) }

// Collect implements [prometheus.Collector].
func (a *App) Collect(to chan<- prometheus.Metric) {
	for _, h := range a.handlers {
		name := strings.ToValidUTF8(h.Name, "\uFFFD")
		s, classes := h.limit.gate.State()
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{name}, labels...)...)
		}
		send(descLimit, prometheus.GaugeValue, float64(s.Limit))
		send(descLatency, prometheus.GaugeValue, s.Latency)
		for i, of := range classes[:min(len(classes), len(h.names))] { // another config may have more
			class := strings.ToValidUTF8(h.names[i], "\uFFFD")
			send(descRunning, prometheus.GaugeValue, float64(of.Running), class)
			send(descWaiting, prometheus.GaugeValue, float64(of.Waiting), class)
			send(descRefused, prometheus.CounterValue, float64(of.Refused), class)
			count, sum, buckets := h.limit.waits[i].Read(stats.FirstServerBound)
			to <- prometheus.MustNewConstHistogram(descWait, count, sum, buckets, name, class)
			for end, name := range gate.AnswerNames {
				send(descAnswers, prometheus.CounterValue, float64(of.Ends[end]), class, name)
				send(descTaken, prometheus.CounterValue, of.Slots[end].Seconds(), class, name)
			}
		}
	}
}
