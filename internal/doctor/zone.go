package doctor

import (
	"cmp"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Zone is what is known of a zone.
type Zone struct {
	Name string

	// Totals counts the requests in the zone, by outcome, and SinceLoaded those since the config was
	// loaded. Matches says that the zone has matchers.
	Totals      [outcome.Count]uint64
	SinceLoaded uint64
	For         time.Duration // how long the process has counted at most
	Matches     bool

	// If it has met no request since the config was loaded: Missed is how many have come to it, Served
	// how many its server has had, and Elsewhere the most that another zone has met. Moved is one that
	// would have met the zone if no handler before had changed it, and Behind a handler that answers all
	// requests before they come to the zone.
	Missed, Served, Elsewhere uint64
	Moved                     *Moved
	Behind                    string

	// Exempts says that the zone has the option exempt.
	Exempts bool

	// Unlimited says that no request has a limit, Closed that the limit allows none, and Blocks that the zone
	// has the option block.
	Unlimited, Closed, Blocks bool

	// Rules are overrides of the zone, or some of them if there are very many.
	Rules []Rule

	// DryRun says that the limit is not enforced for any key, and Rollout for which it is, in words.
	DryRun  bool
	Rollout string

	// Costs counts the responses since the config was loaded that should say what their requests cost, by what
	// happened to that.
	Costs [stats.CostResults]uint64

	// Judged is how many responses charge has judged since the config was loaded, Charged how many
	// of them were charged, and LastStatus the status of the last one.
	Judged, Charged uint64
	LastStatus      int

	// Alone says that the zone counts in this process because no store is given for it, while other zones of the
	// config use Shared.
	Alone  bool
	Shared string

	// Forwarded is the last request from a proxy that is not trusted; nil if there was none.
	Forwarded *Forwarded

	// Variable says that requests can have different keys, and Addresses that the key has nothing
	// but the client's address.
	Variable, Addresses bool

	// Networks says that clients of a network have one key.
	Networks bool

	// Spread is how recent requests are spread over keys. Keyless is how many of them have no key, and
	// MissingKey what happens to these: share, skip or reject.
	Spread     topk.Spread
	Keyless    uint64
	MissingKey string

	// Key is the key in the config, and KeyInWords where a client sends it: "cookie sid".
	Key, KeyInWords string

	// OnStoreError is what happens while the store does not answer. Silent says that it does not,
	// and Store is its name.
	OnStoreError, Store string
	Silent              bool

	// Definition is the limit and the key of the zone in words. DefinedOtherwise are the other instances that
	// define the zone otherwise, and how.
	Definition       string
	DefinedOtherwise []string

	// Warnings are those of the config that name the zone.
	Warnings []string
}

// Moved is the path of a request as it came, and as a zone sees it.
type Moved struct{ Came, Here string }

// Forwarded is the last request from a proxy that is not trusted, and how many of the requests that
// were looked at came from such proxies. Few says that clients may write the field themselves.
type Forwarded struct {
	Field, Found string
	Fix          advice.Text
	Few          bool
	Ago          time.Duration
	Count, Of    uint64
}

var zoneChecks = []check[Zone]{
	{"config", repeatWarnings},
	{"limit", limits},
	{"rollout", enforces},
	{"requests", meets},
	{"exempt", exempts},
	{"overrides", overrules},
	{"rejected", rejects},
	{"proxy", trusts},
	{"keys", tellsApart},
	{"missing_key", hasKeys},
	{"charge", charges},
	{"costs", readsCosts},
	{"store", shares},
	{"on_store_error", decides},
	{"agreement", agrees},
}

// enough is how many requests are enough to judge.
const enough = 100

// met returns how many requests the zone has met.
func (z *Zone) met() (n uint64) {
	for _, of := range z.Totals {
		n += of
	}
	return n
}

// repeatWarnings repeats the warnings of the config about a zone.
func repeatWarnings(z *Zone) []result { return repeated(z.Warnings) }

// repeated has a result for each warning of the config.
func repeated(warnings []string) (all []result) {
	for _, text := range warnings {
		found, fix := advice.Split(text)
		all = append(all, result{adminapi.LevelWarn, found, cmp.Or(fix, correctZone.With())})
	}
	return all
}

// Watched returns what the log should say of a zone that runs, by the check that has found it. Old says that the
// config has run for some minutes.
func (z *Zone) Watched(old bool) map[string]string {
	texts := make(map[string]string)
	for name, look := range map[string]func(*Zone) []result{"charge": charges, "store": shares, "requests": unmet} {
		for _, r := range look(z) {
			if r.level == adminapi.LevelWarn && (old || name != "requests") {
				texts[name] = r.found + "; " + r.fix.String()
			}
		}
	}
	return texts
}
