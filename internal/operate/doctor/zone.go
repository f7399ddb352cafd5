package doctor

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Zone is a zone, and what is known of it besides.
type Zone struct {
	adminapi.Zone

	// SinceLoaded counts the requests since the config was loaded. If there are none, the others say why: Missed is how many have
	// come to the zone, Served how many its server has had, and Elsewhere the most that another zone has met.
	SinceLoaded, Missed, Served, Elsewhere uint64

	// Matches says that the zone has matchers, Blocks that it has the option block, Unlimited that no request has a limit, and
	// Closed that the limit allows none.
	Matches, Blocks, Unlimited, Closed bool

	// Results counts the responses since the config was loaded that should say what their requests cost, by what happened
	// to that.
	Results [stats.CostResults]uint64

	// Judged is how many responses charge has judged since the config was loaded, Charged how many of them were charged,
	// and LastStatus the status of the last one.
	Judged, Charged uint64
	LastStatus      int

	// Shared is the store of other zones of the config, if this one counts in the process because no store is given for it.
	Shared string

	// Forwarded says that requests come from a proxy that is not trusted, and what to do; empty if none came lately.
	Forwarded string

	// Variable says that requests can have different keys, Addresses that the key has nothing but the client's address, and
	// Networks that clients of a network have one key.
	Variable, Addresses, Networks bool

	// Spread is how recent requests are spread over keys. Keyless is how many of them have no key, and MissingKey what happens
	// to these: share, skip or reject.
	Spread     topk.Spread
	Keyless    uint64
	MissingKey string

	// Silent says that the store does not decide.
	Silent bool

	// Warnings are those of the config that name the zone, and OneKey says that one of them is about a key which is the same for
	// all clients.
	Warnings []string
	OneKey   bool
}

const (
	// enough is how many requests are enough to judge, and someRequests how many that a zone does not meet.
	enough       = 100
	someRequests = 20
)

var (
	seeRejected = advice.New("doctor/rejected", "'caddy rate-limit watch --outcome rejected' shows why: block, or no key, plan or valid limit")
	nameKey     = advice.New("doctor/missing_key/nobody", "check its name, and that it is set before rate_limit runs; until then, set enforce 0, or key {client_ip}")
	seeStore    = advice.New("doctor/on_store_error", "see what is wrong with that store")
)

var zoneProblems = []problem[*Zone]{
	{"limit", warn, func(z *Zone) string {
		return when(z.Unlimited, "no request has a limit, because all plans are unlimited")
	}, advice.New("doctor/limit/unlimited", "give a plan a limit, or remove the zone")},
	{"limit", warn, func(z *Zone) string {
		return when(z.Closed, "the limit allows no request")
	}, advice.New("doctor/limit/closed", "raise events, or use respond to refuse all requests")},

	{"rollout", warn, func(z *Zone) string {
		return when(z.Rollout == "dry run",
			"dry run: it refuses nothing, and would have refused %d of %d requests", z.of(outcome.DryRun), z.Requests())
	}, advice.New("doctor/rollout", "raise enforce when the figures are right")},

	{"requests", warn, func(z *Zone) string {
		switch {
		case z.SinceLoaded > 0:
		case z.Matches && z.Missed >= someRequests:
			return fmt.Sprintf("it has matched none of the %d requests that have reached it", z.Missed)
		case z.Missed == 0 && z.Served >= someRequests:
			return fmt.Sprintf("no request has reached it, although its server has had %d", z.Served)
		case z.Matches && z.Elsewhere >= enough:
			return fmt.Sprintf("it has met no request, although another zone has met %d", z.Elsewhere)
		}
		return ""
	}, advice.New("doctor/requests", "correct its match, or its route; 'caddy rate-limit explain' shows what a request meets")},

	{"exempt", warn, func(z *Zone) string {
		return when(z.all(outcome.Exempt) && !z.Unlimited,
			"all %d requests were exempt, so it refuses nothing", z.Requests())
	}, advice.New("doctor/exempt", "narrow exempt; missing_key skip and unlimited plans exempt requests too")},

	{"rejected", warn, func(z *Zone) string {
		return when(z.all(outcome.Rejected) && z.Blocks && z.Keyless == 0,
			"all %d requests were rejected before the limit was asked, as by a block list", z.Requests())
	}, seeRejected},
	{"rejected", fail, func(z *Zone) string {
		return when(z.all(outcome.Rejected), "all %d requests were rejected before the limit was asked", z.Requests())
	}, seeRejected},

	// Clients of a proxy that Caddy takes for the client all share one limit.
	{"proxy", warn, func(z *Zone) string { return z.Forwarded }, nil},

	{"keys", warn, func(z *Zone) string {
		s := z.Spread
		return when(z.Variable && s.Keys == 1 && s.Requests >= enough && z.Keyless == 0 && !z.Networks,
			"all %d recent requests have the same key", s.Requests)
	}, advice.New("doctor/keys/one",
		"choose a key that differs from client to client; 'caddy rate-limit top' shows the keys")},
	{"keys", warn, func(z *Zone) string {
		s := z.Spread
		return when(z.Variable && s.Requests >= enough && s.Repeated <= s.Keys/50 && !z.Addresses,
			"%d recent requests have almost as many keys, so the limit hardly ever refuses", s.Requests)
	}, advice.New("doctor/keys/new", "choose a key that clients cannot change with each request, such as {client_ip}")},

	// If hardly any request has a key, its name is wrong or it is set too late, and what missing_key does to all these
	// requests is wrong as well.
	{"missing_key", warn, func(z *Zone) string {
		effect := map[string]string{"share": "share one limit", "reject": "are rejected"}[z.MissingKey]
		return when(effect != "" && z.lacksKeys(90),
			"%d of %d recent requests lack the key, %s, and %s", z.Keyless, z.Spread.Requests, z.KeyForm, effect)
	}, nameKey},
	{"missing_key", warn, func(z *Zone) string {
		return when(z.MissingKey == "share" && z.lacksKeys(10),
			"%d of %d recent requests lack the key, %s, and share one limit",
			z.Keyless, z.Spread.Requests, z.KeyForm)
	}, advice.New("doctor/missing_key",
		"set missing_key skip, and count these requests in a zone with key {client_ip}")},

	{"charge", warn, func(z *Zone) string {
		return when(z.Charged == 0 && z.Judged >= enough,
			"none of %d responses was charged, because charge matches none; the last one had status %d",
			z.Judged, z.LastStatus)
	}, advice.New("doctor/charge", "name a status or a header of the responses that should be charged")},

	{"costs", warn, unread, nil},

	{"store", warn, func(z *Zone) string {
		return when(z.Shared != "",
			"it counts in the memory of each instance, while other zones of this config share %s", z.Shared)
	}, advice.New("doctor/store",
		"write the store in the global option rate_limit, which holds for all sites, or write store memory where this is intended")},

	{"on_store_error", fail, func(z *Zone) string {
		return when(z.Silent && z.OnStoreError == "deny",
			"it refuses all requests, because store %s does not answer in time", z.Store)
	}, seeStore},
	{"on_store_error", warn, func(z *Zone) string {
		return when(z.Silent && z.OnStoreError == "local",
			"each instance counts for itself, because store %s does not answer in time", z.Store)
	}, seeStore},
	{"on_store_error", fail, func(z *Zone) string {
		return when(z.Silent, "it limits nothing, because store %s does not answer in time", z.Store)
	}, advice.New("doctor/on_store_error/allow",
		"see what is wrong with that store; with on_store_error local, the zone would still limit")},
}

// of returns how many requests had an outcome.
func (z *Zone) of(o outcome.Outcome) uint64 { return z.Totals[outcome.Names[o]] }

// all reports whether all requests had an outcome, and there were enough.
func (z *Zone) all(o outcome.Outcome) bool { return z.of(o) == z.Requests() && z.Requests() >= enough }

// lacksKeys reports whether at least a share of the recent requests, in percent, lacks a key. Behind a proxy on a Unix socket
// clients have no address, which the check proxy says.
func (z *Zone) lacksKeys(percent uint64) bool {
	return !(z.Addresses && z.Forwarded != "") && z.Keyless >= enough/10 && z.Keyless*100 >= z.Spread.Requests*percent
}

// costFixes say what to do about responses that do not say a cost that can be read. Errors without one, responses that are not
// charged, and those that were broken off are as they should be.
var costFixes = [stats.CostResults]*advice.Advice{
	stats.CostUnknown: advice.New("costs/unknown", "check the paths of json in charge; for streams, let clients ask for the usage, or set the cost of such responses with unknown"),
	stats.CostInvalid: advice.New("costs/invalid", "correct the paths and weights of json in charge: each number and the sum must be from 0 to 10^12"),
	stats.CostEncoded: advice.New("costs/encoded", "let the upstream compress with gzip or not at all; Accept-Encoding of the requests already asks for that"),
}

// unread finds zones in which a tenth of the responses, or more, do not say a cost that can be read.
func unread(z *Zone) string {
	var unread uint64
	var causes []string
	most := stats.CostUnknown
	for r, n := range z.Results {
		if costFixes[r] == nil || n == 0 {
			continue
		}
		unread += n
		causes = append(causes, fmt.Sprintf("%s %d", stats.CostNames[r], n))
		if n > z.Results[most] {
			most = stats.CostResult(r)
		}
	}
	of := unread + z.Results[stats.CostRead]
	return when(unread >= enough/10 && unread*10 >= of,
		"%d of %d responses did not say a cost that can be read (%s); %s", unread, of, strings.Join(causes, ", "), costFixes[most].With())
}
