package integration_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsInTheDocs runs every line in the docs that asks the admin endpoint, with curl or
// caddy rate-limit.
func TestCommandsInTheDocs(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, caddyfile("", `
		rate_limit {
			zone clients {
				key {client_ip}
				events 100
				window 1m
				overrides
				ban 10m after 50 refusals in 1m
			}
			zone nets {
				key         {client_ip}
				ipv4_prefix 24
				rate        2000/1m
				ban         1m after 500 refusals in 1m up_to 1d
				overrides
			}
			zone logins {
				key "{client_ip} {header.User}"
				events 10
				window 1h
			}
			zone api {
				key {header.X-Api-Key}
				plan {header.Plan} {
					free 60/1m
					pro  6000/1m
					default free
				}
				overrides
			}
			`+memory+`
		}
		respond ok`))
	// Here a stream ends after some time, which is no failure.
	const here = `
		curl() { command curl -sS --fail-with-body --max-time 2 --unix-socket "$ADMIN" "$@" || test $? = 28; }
		caddy() {
			if [ "$2" = watch ]; then timeout 1 "$CADDY" "$@" --address "unix/$ADMIN" || test $? = 124
			else command "$CADDY" "$@" --address "unix/$ADMIN"; fi
		}
		`
	fence, question := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$"), regexp.MustCompile(`^(curl .*/rate_limit/|caddy rate-limit )`)
	found := 0
	for _, page := range []string{"README.md", "docs/admin.md", "docs/cli.md", "docs/operating.md", "docs/policies.md"} {
		text, err := os.ReadFile("../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				if !question.MatchString(line) {
					continue
				}
				found++
				if output, err := s.shell(here + line); err != nil || strings.Contains(output, "cannot be looked at") {
					t.Errorf("%s: %s%v\n%s", page, line, err, output)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("found just %d commands", found)
	}
}
