package cases_test

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
)

// TestUnknownNames: a zone, an outcome or an accepted change that there is not is an error with the file, the line and
// the nearest name, or fails with them: no case holds by chance.
func TestUnknownNames(t *testing.T) {
	config := adapt(t, "example.com {\n\trate_limit {\n\t\tzone logins {\n\t\t\trate 5/1m\n\t\t\toverrides\n\t\t}\n\t}\n\trespond ok\n}\n")
	const zone = `Caddyfile.test:2: the config has no zone "logns"; did you mean "logins"?, its zones are logins`
	for step, want := range map[string]string{
		"GET / any by logns":                zone,
		"GET / skips logns":                 zone,
		"GET / used logns 1":                zone,
		"ban logns k":                       zone,
		"GET / outcome logins alowed":       `outcome needs a zone and an outcome, such as clients exempt, got 'logins alowed': unknown outcome; did you mean "allowed"?, must be one of allowed, limited, not_charged, dry_run, banned, rejected, exempt, failed_open, failed_closed, local, abandoned, at Caddyfile.test:2`,
		"GET / by logins\n\tGET / by login": `Caddyfile.test:3: the config has no zone "login"; did you mean "logins"?, its zones are logins`,
		"GET / counts logins":               "<nil>",
	} {
		f, err := cases.Parse("Caddyfile.test", []byte("case x {\n\t"+step+"\n}\n"))
		got := fmt.Sprint(err)
		if err == nil {
			for _, failure := range run(t, config, f)[0].Failures {
				got = fmt.Sprintf("%s:%d: %s", f.Name, failure.Line, failure.Got)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	for change, want := range map[string]string{
		"zone logins: max_events 5 -> 6":   "<nil>",
		"zone logins: max_event 5 -> 6":    `accept "zone logins: max_event 5 -> 6" is no change of the config; did you mean "zone logins: max_events 5 -> 6"? (--mutate --json lists all), at Caddyfile.test:2`,
		"zone logins: max_events 50 -> 70": `accept "zone logins: max_events 50 -> 70" is no change of the config (--mutate --json lists all), at Caddyfile.test:2`,
	} {
		f := parse(t, fmt.Sprintf("\naccept %q reason\ncase x {\n\tGET /\n}\n", change))
		if _, err := cases.Mutate(config, []*cases.File{f}); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}

// TestRedirectsToHTTPS: a request without TLS to a site that has it is redirected, as Caddy does it by itself.
func TestRedirectsToHTTPS(t *testing.T) {
	config := adapt(t, "example.com {\n\trate_limit {\n\t\tzone z {\n\t\t\trate 1/1m\n\t\t}\n\t}\n\trespond ok\n}\n")
	f := parse(t, "case x {\n\tGET http://example.com/a repeat 2 status 308 skips z response Location https://example.com/a\n}\n")
	for _, r := range run(t, config, f) {
		for _, failure := range r.Failures {
			t.Errorf("want %s, got %.200s", failure.Expected, failure.Got)
		}
	}
}
