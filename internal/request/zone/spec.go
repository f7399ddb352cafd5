package zone

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// Place is where a zone is: what it needs to know besides its config. It does not change.
type Place struct {
	Name    string
	Index   int // among the zones of the handler
	StoreID string
	OnError string // the on_store_error of the handler
	JSON    []byte // the zone's config
	Salt    uint64 // tells generations of the zone apart

	Requests *stats.Few // of the handler's server

	Matchers caddyhttp.MatcherSets // loaded, like Exempt and Block, from the raw ones of the config
	Exempt   caddyhttp.MatcherSets
	Block    caddyhttp.MatcherSets
}

// makeTemplates makes the templates of the key and of the name of a plan.
func (z *Zone) makeTemplates() (err error) {
	if z.Template, err = key.New(z.Key, z.IPv4Prefix, z.IPv6Prefix); err != nil {
		return err
	}
	if z.Plan != nil && z.Plan.Of != "" {
		if z.PlanTemplate, err = key.NewText("plan", z.Plan.Of); err != nil {
			return err
		}
	}
	if z.MissingKey.Word == config.Reject && z.KeylessStatus() == http.StatusUnauthorized {
		z.Challenge = challengeFor(z.Template)
	}
	return nil
}

// BlockStatus is the status of requests that are blocked.
const BlockStatus = http.StatusForbidden

// KeylessStatus is the status of requests that are refused because they have no key.
func (z *Zone) KeylessStatus() int { return cmp.Or(z.MissingKey.Status, http.StatusUnauthorized) }

// challengeFor returns a challenge for the place where a client must send its key: that of Bearer
// for the field Authorization, and one that just names the place for others, for which there is no
// standard. It is empty if clients do not send the key as it is.
func challengeFor(k *key.Template) string {
	for _, p := range k.Parts {
		switch source, ok := key.SourceOf(p.Placeholder); {
		case !ok:
		case source == key.Source{In: key.Header, Name: "Authorization"}:
			return `Bearer realm="restricted"`
		default:
			return "ApiKey in=" + source.In + ", name=" + strconv.QuoteToASCII(source.Name)
		}
	}
	return ""
}

// Hidden reports whether no header and no body tells clients about the zone.
func (z *Zone) Hidden() bool { return z.Headers == "off" }

// describe describes what all zones of the same name must agree on, besides the key. The limits must be valid.
func (z *Zone) describe() string {
	var text string
	if z.MaxEvents != nil {
		text = z.Limit.Describe()
	}
	if z.Plan != nil {
		if text != "" {
			text += " and "
		}
		text += z.Plan.Describe(z.Limits())
	}
	if z.Hold != 0 {
		text += " lend " + duration.Format(z.Hold)
	}
	if z.Overrides {
		text += " with overrides"
	}
	if z.Ban != nil {
		text += " ban " + z.Ban.String()
	}
	return text
}
