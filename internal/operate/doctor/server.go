package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// Server says where a server takes the address of a client from.
type Server struct {
	Server  string   // its name
	Trusted []string // ranges of addresses of proxies, or the name of the module that has them

	TrustsSockets, Strict bool

	Headers []string
}

// serverProblems are about clients that can choose their address.
var serverProblems = []problem[*Server]{
	{"client_address", fail, func(s *Server) string {
		everybody := slices.IndexFunc(s.Trusted, isEverybody)
		if everybody < 0 {
			return ""
		}
		return fmt.Sprintf("trusted_proxies contains %s, so any client can choose its address in %s",
			s.Trusted[everybody], strings.Join(s.Headers, ", "))
	}, advice.New("doctor/client_address/everybody", "name only your proxies in trusted_proxies")},

	{"client_address", warn, func(s *Server) string {
		by := slices.Clone(s.Trusted)
		if s.TrustsSockets {
			by = append(by, "Unix sockets")
		}
		forwarded := slices.ContainsFunc(s.Headers, func(h string) bool { return strings.EqualFold(h, "X-Forwarded-For") })
		return when(len(by) > 0 && !s.Strict && forwarded, "the first address in X-Forwarded-For counts, and clients can write it themselves if the proxy (%s) only appends to it",
			shorten(by))
	}, advice.New("doctor/client_address/strict",
		"set trusted_proxies_strict, unless your proxy removes the addresses that clients send")},
}

// isEverybody reports whether a range has all addresses.
func isEverybody(text string) bool {
	prefix, err := netip.ParsePrefix(text)
	return err == nil && prefix.Bits() == 0
}

// mixed is how much the times of slots differ from which on quick and slow requests should have a limit each. A memoryless
// server has 2, and 10 ms beside one in five that takes a second has 4.6.
const mixed = 4

var helpUpstream = advice.New("doctor/upstream", "add capacity behind it, or make its requests cheaper; "+advice.Docs+"overload.md")

// adaptiveProblems are about the upstream of an adaptive limit.
var adaptiveProblems = []problem[*adminapi.Adaptive]{
	{"upstream", warn, func(a *adminapi.Adaptive) string {
		since := ""
		if a.Since != nil {
			since = " since " + a.Since.Format(time.DateTime)
		}
		return when(a.Waiting > 0,
			"the upstream is the bottleneck%s: %d requests run, as many as it can use, and %d wait",
			since, a.Running, a.Waiting)
	}, helpUpstream},

	{"upstream", warn, func(a *adminapi.Adaptive) string {
		return when(a.Failed > max(a.Useful/10, enough),
			"the upstream failed %d of %d requests", a.Failed, a.Failed+a.Useful+a.Left)
	}, helpUpstream},

	{"slots", warn, func(a *adminapi.Adaptive) string {
		return when(a.Waiting > 0 && a.Spread > mixed,
			"quick and slow requests share the limit, so it follows the upstream slowly: a slot is taken for %s on average, and most of the time by requests that take %s",
			duration.Seconds(a.Latency), duration.Seconds(a.Latency*a.Spread))
	}, advice.New("doctor/upstream/mixed",
		"give quick and slow requests an adaptive_concurrency each; "+advice.Docs+"overload.md")},
}

// member is one of the instances of a fleet.
type member struct {
	adminapi.Instance
	all []adminapi.Instance // the one that compares first
}

// mayBeUnheard reports whether an instance that does not report may just not be heard.
func (m member) mayBeUnheard() bool { return m.all[0].Trouble != "" }

// othersAreWell reports whether another instance takes requests without trouble.
func (m member) othersAreWell() bool {
	return slices.ContainsFunc(m.all, func(i adminapi.Instance) bool { return i.Serves() && i.Trouble == "" })
}

var (
	updateInstance = advice.New("doctor/version", "give all instances the same version of this module, and its Redis user the rights that "+advice.Docs+"redis.md lists")
	defineOne      = advice.New("doctor/agreement", "give it the same limit, key and prefixes everywhere: compare 'caddy rate-limit zones' on each instance")
)

// memberProblems are those of an instance, compared with the others.
var memberProblems = []problem[member]{
	{"instances", warn, func(m member) string {
		return when(m.State == adminapi.StateSilent && !m.mayBeUnheard(),
			"it has not reported for %.0fs: it hangs, was killed, or does not reach the store", m.Age)
	}, advice.New("doctor/instances/silent",
		"see that it runs and reaches the store; what it has counted is lost if it ends")},
	{"instances", unknown, func(m member) string {
		return when(m.State == adminapi.StateMute && !m.mayBeUnheard(), "cannot say what it does: it does not report")
	}, updateInstance},

	{"config", fail, func(m member) string {
		return when(len(m.Differs) > 0 && m.State != adminapi.StateLeft,
			"it has another config than the instance that answers; these zones differ: %s", shorten(m.Differs))
	}, defineOne},

	{"outage", warn, func(m member) string { // if no instance is well it is the store, and each instance says so
		return when(m.Trouble != "" && m.Serves() && m.othersAreWell(), "%s; others are well", m.Trouble)
	}, advice.New("doctor/outage", "check the network from that instance to the store")},
}
