package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// recent is how long ago a request from a proxy still says something of the present.
const recent = 10 * time.Minute

// trusts finds proxies whose clients all share one limit, because Caddy takes the proxy for the
// client.
func trusts(z *Zone) []result {
	switch f := z.Forwarded; {
	case f == nil || f.Ago > recent:
		return nil
	case f.Few:
		return ok("only %d of %d requests carry %s from addresses that are not trusted", f.Count, f.Of, f.Field)
	default:
		return warn(f.Fix, "%s (%d of %d)", f.Found, f.Count, f.Of)
	}
}

// tellsApart finds keys that are the same for all requests, or new for each.
func tellsApart(z *Zone) []result {
	s := z.Spread
	switch {
	case !z.Variable:
		return ok("one limit for all requests, because the key has no placeholder")
	case s.Requests == 0:
		return ok("no recent requests")
	case s.Keys == 1 && s.Requests >= enough && z.Keyless == 0 && !z.Networks:
		return warn(varyKey.With(), "all %d recent requests have the same key", s.Requests)
	case s.Requests >= enough && s.Repeated <= s.Keys/50 && !z.Addresses:
		return warn(holdKey.With(),
			"%d recent requests have almost as many keys, so the limit hardly ever refuses", s.Requests)
	}
	return ok("%d recent requests; keys seen: %d, more than once: %d", s.Requests, s.Keys, s.Repeated)
}

// hasKeys finds zones in which a tenth of the requests, or more, share a limit because they have no
// key. If hardly any request has one, its name is wrong or it is set too late, and what missing_key does
// to all these requests is wrong as well. A warning of the config that says so is enough. Behind a proxy
// on a Unix socket clients have no address, which the check proxy says.
func hasKeys(z *Zone) []result {
	if z.Keyless < enough/10 || z.Addresses && z.Forwarded != nil || slices.ContainsFunc(z.Warnings, func(text string) bool { return strings.HasPrefix(text, fmt.Sprintf("key %q: ", z.Key)) }) {
		return nil
	}
	switch shares, nobody := z.MissingKey == "share", z.Keyless*10 >= z.Spread.Requests*9; {
	case nobody && shares:
		return warn(nameKey.With(z.KeyInWords), "%d of %d recent requests lack the key, %s, and share one limit", z.Keyless, z.Spread.Requests, z.KeyInWords)
	case nobody && z.MissingKey == "reject":
		return warn(nameKey.With(z.KeyInWords), "%d of %d recent requests lack the key, %s, and are rejected", z.Keyless, z.Spread.Requests, z.KeyInWords)
	case shares && z.Keyless*10 >= z.Spread.Requests:
		return warn(skipKeyless.With(), "%d of %d recent requests lack the key, %s, and share one limit", z.Keyless, z.Spread.Requests, z.KeyInWords)
	}
	return nil
}
