package running

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// These describe all metrics.
var descs []*prometheus.Desc

// desc makes the description of a metric.
func desc(name, help string, labels ...string) *prometheus.Desc {
	descs = append(descs, prometheus.NewDesc("caddy_rate_limit_"+name, help, labels, nil))
	return descs[len(descs)-1]
}

// The first five metrics have the names of github.com/mholt/caddy-ratelimit. No label has a value that
// a client can choose.
var (
	descRequests = desc("requests_total", "Requests in the zone, whatever their outcome.", "zone")
	descDeclined = desc("declined_requests_total", "Requests that the zone refused.", "zone")
	descTime     = desc("process_time_seconds",
		"Seconds to decide on a request, including the time for which it was held.", "zone")
	descKeys   = desc("keys_total", "Keys of the zone in the memory store. This is a gauge: it can go down.", "zone")
	descConfig = desc("config",
		"Always 1. The labels are the limit of the zone, or of one of its plans, and whether it is enforced.", "zone", "max_events", "window", "plan", "rollout")

	descDecisions = desc("decisions_total", "Requests in the zone, by their outcome there.", "zone", "outcome")
	descNear      = desc("near_limit_requests_total", "Requests of the zone that passed, and left their key with little of its limit.", "zone")
	descBans      = desc("bans_total", "Bans of the zone that began with a refusal by this process.", "zone")
	descCosts     = desc("response_costs_total", "Responses of a zone that reads costs in their bodies, by what happened to their cost.", "zone", "result")
	descCostSum   = desc("response_cost_sum_total", "What the requests of a zone that reads costs in bodies have cost in total.", "zone")
	descInUse     = desc("concurrency_in_use", "Slots of the zone that are held by requests of this process.", "zone")

	descUp      = desc("store_up", "1 while the store answers, 0 while it does not.", "store")
	descLatency = desc("store_latency_seconds",
		"Seconds that calls to the store's server took, including calls that failed.", "store")
	descErrors = desc("store_errors_total",
		"Requests for which the store had no answer, by kind of error.", "store", "kind")
	descBreaker = desc("store_breaker_state",
		"1 for the current state of the store's circuit breaker, 0 for the other states.", "store", "state")
	descDenyHits = desc("store_deny_cache_hits_total",
		"Refusals without a call, because an earlier answer said how long to refuse.", "store")
	descLost = desc("store_lost_corrections_total",
		"Refunds and late costs that were given up, because the store did not confirm them or did not answer for too long.",
		"store")
	descWaited = desc("store_queue_seconds_total",
		"Seconds that requests have waited in this process before they were sent to the store's server.", "store")
	descSpared = desc("store_lent_decisions_total",
		"Requests that needed no call, because this process had charged their keys ahead.", "store")
	descSilent = desc("store_silent_servers",
		"Sentinels and nodes of a Cluster that do not answer this process, or do not know the master.", "store")
	descInstances = desc("store_instances", "Processes that share the store, including this one.", "store")
)

// Describe implements [prometheus.Collector].
func (*Config) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descs {
		to <- d
	}
}

// Collect implements [prometheus.Collector], for the handlers that have metrics. Each config has its own registry, but the counts
// outlive the config.
func (c *Config) Collect(to chan<- prometheus.Metric) {
	var measured Config
	for _, h := range c.All() {
		if !h.DisableMetrics {
			measured.Add(h)
		}
	}
	names := make(map[string]int)
	for _, s := range measured.Stores() {
		name := s.Name()
		if names[name]++; names[name] > 1 { // another database or prefix of the same Redis
			name += " #" + strconv.Itoa(names[name])
		}
		collection{to}.store(s, name)
	}
}

// collection is one scrape.
type collection struct{ to chan<- prometheus.Metric }

func (c collection) send(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	c.to <- prometheus.MustNewConstMetric(d, kind, value, valid(labels)...)
}

func (c collection) histogram(d *prometheus.Desc, h *stats.Histogram, first int, labels ...string) {
	count, sum, buckets := h.Read(first)
	c.to <- prometheus.MustNewConstHistogram(d, count, sum, buckets, valid(labels)...)
}

// valid makes labels of UTF-8.
func valid(labels []string) []string {
	for i, label := range labels {
		labels[i] = strings.ToValidUTF8(label, "\uFFFD")
	}
	return labels
}

func (c collection) zone(z *Zone, told adminapi.Zone) {
	var declined uint64
	for o, name := range outcome.Names {
		n := told.Totals[name]
		if outcome.Outcome(o).Refused() {
			declined += n
		}
		c.send(descDecisions, prometheus.CounterValue, float64(n), z.Name, name)
	}
	c.send(descRequests, prometheus.CounterValue, float64(told.Requests()), z.Name)
	c.send(descDeclined, prometheus.CounterValue, float64(declined), z.Name)
	c.send(descNear, prometheus.CounterValue, float64(z.Stats.NearLimit.Load()), z.Name)
	c.send(descBans, prometheus.CounterValue, float64(z.Stats.Bans.Load()), z.Name)
	c.histogram(descTime, &z.Stats.Latency, 0, z.Name)
	if told.Costs != nil {
		for result, n := range told.Costs {
			c.send(descCosts, prometheus.CounterValue, float64(n), z.Name, result)
		}
		c.send(descCostSum, prometheus.CounterValue, float64(told.CostSum), z.Name)
	}
	if told.Keys != nil {
		// This is a gauge, but it keeps the name that dashboards know, which Prometheus's linter
		// allows for counters only. So it has no type.
		c.send(descKeys, prometheus.UntypedValue, float64(*told.Keys), z.Name)
	}
	if told.InUse != nil {
		c.send(descInUse, prometheus.GaugeValue, float64(*told.InUse), z.Name)
	}
	for plan, l := range z.Limits() {
		c.limit(z, plan, &l)
	}
}

func (c collection) limit(z *Zone, plan string, l *config.Limit) {
	window := "" // concurrency has none
	if !config.CountsSlots(l.Algorithm) {
		window = l.Window.Format()
	}
	c.send(descConfig, prometheus.GaugeValue, 1, z.Name, l.MaxEvents.String(), window, plan, z.Zone.Rollout())
}

func (c collection) store(s *Store, name string) {
	keys := KeyCounts(s)
	for _, z := range s.Zones {
		c.zone(z, z.Show(keys))
	}
	told, shared := s.Show(keys), s.Ref.Store
	c.send(descUp, prometheus.GaugeValue, map[bool]float64{true: 1}[!told.Failing], name)
	for _, kind := range store.Failures() {
		c.send(descErrors, prometheus.CounterValue, float64(shared.Health.ErrorCount(kind)), name, kind)
	}
	if !shared.Remote {
		return
	}
	c.histogram(descLatency, &shared.Latency, stats.FirstServerBound, name)
	if told.Breaker != "" {
		for _, state := range []string{store.BreakerClosed, store.BreakerHalfOpen, store.BreakerOpen} {
			c.send(descBreaker, prometheus.GaugeValue, map[bool]float64{true: 1}[state == told.Breaker], name, state)
		}
	}
	c.send(descDenyHits, prometheus.CounterValue, float64(told.DenyCacheHits), name)
	c.send(descLost, prometheus.CounterValue, float64(told.LostCorrections), name)
	c.send(descSilent, prometheus.GaugeValue, float64(len(told.Silent)), name)
	var counted store.Stats
	if observed, ok := shared.Store.(store.Observed); ok {
		counted = observed.Stats()
	}
	c.send(descWaited, prometheus.CounterValue, counted.Waited.Seconds(), name)
	if slices.ContainsFunc(s.Zones, func(z *Zone) bool { return z.Prepays() }) {
		c.send(descSpared, prometheus.CounterValue, float64(counted.Spared), name)
	}
	if _, ok := shared.Store.(store.Fleet); ok {
		c.send(descInstances, prometheus.GaugeValue, float64(told.Instances), name)
	}
}
