package caddyratelimit

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// overPass is what happens to requests above the limit, as requests meet it.
func (z *Zone) overPass() zone.OverPass {
	return zone.OverPass{PassesOver: z.Over == zone.OverPasses, OverHeader: textproto.CanonicalMIMEHeaderKey(z.OverHeader)}
}

// checkOver checks what happens to requests above the limit, and refuses options that refuse, hold or tell clients
// something if they pass.
func (z *Zone) checkOver(s *zone.Spec) error {
	over := z.Over
	if err := oneOf("over", &over, zone.OverRefuses, zone.OverPasses); err != nil {
		return err
	}
	if !s.PassesOver {
		if z.OverHeader != "" {
			return fmt.Errorf("over_header %s needs over pass: no other request above the limit passes", z.OverHeader)
		}
		return nil
	}
	for _, o := range []struct {
		name string
		set  bool
		why  string
	}{
		{"dry_run", z.DryRun, "both let requests pass, but only over pass marks them"},
		{"enforce", z.Enforce != nil, "no key is refused, so there is no share of keys to refuse"},
		{"ban", z.Ban != nil, "no request is refused, so none leads to a ban"},
		{"waits (max_wait, mode queue)", s.Waits(), "requests above the limit pass, so none waits"},
		{"on_store_error deny", z.OnStoreError == zone.DenyOnError, "a limit that refuses nothing must not refuse all while the store does not answer: write allow or local"},
		{"headers " + z.Headers, !s.Hidden && z.Headers != "", "headers tell clients about limits that refuse: write headers off, or leave it out"},
	} {
		if o.set {
			return fmt.Errorf("over pass and %s exclude each other: %s", o.name, o.why)
		}
	}
	return checkOverHeader(s.Name, z.OverHeader)
}

// checkOverHeader checks a header of requests that contains names of zones.
func checkOverHeader(zoneName, name string) error {
	if name == "" {
		return nil
	}
	if strings.ContainsFunc(name, placeholder.NotInFieldName) {
		return fmt.Errorf("over_header must be the name of a header, such as X-Over-Limit, got %q", name)
	}
	for _, prefix := range []string{"X-Forwarded-", "Forwarded", "Authorization", "Cookie", "Host", "Accept", "If-"} {
		if dashed := dashes(name); len(dashed) >= len(prefix) && strings.EqualFold(dashed[:len(prefix)], prefix) {
			return fmt.Errorf("over_header %s: upstreams need what clients or proxies send in it: choose another name, such as X-Over-Limit", name)
		}
	}
	if err := respond.NotHTTP("over_header", dashes(name)); err != nil {
		return err
	}
	if strings.ContainsFunc(zoneName, func(r rune) bool { return r < ' ' || r > '~' || r == ',' }) || strings.TrimSpace(zoneName) != zoneName {
		return errors.New("over_header has the name of the zone as its value, so the name must be printable ASCII without commas: rename the zone")
	}
	return nil
}

// dashes returns the usual form of a header's name that an upstream may read as the given one.
func dashes(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, name)
}

// parseOver parses refuse | pass [<header>].
func parseOver(d *caddyfile.Dispenser, z *Zone) (string, error) {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && args[0] != zone.OverPasses {
		return "", d.Errf("over takes refuse, or pass and perhaps a header, got '%s'", strings.Join(args, " "))
	}
	if z.Over = args[0]; len(args) == 2 {
		z.OverHeader = args[1]
	}
	return strings.Join(args, " "), nil
}
