//go:build deep

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// follows names the tests that run the commands of a page in their order, with the configs of the page.
var follows = map[string]string{
	"../../docs/choosing-a-limit.md": "TestChoosingALimit",
	"../../docs/rollout.md":          "TestChoosingALimit",
	"../../docs/getting-started.md":  "TestGettingStarted",
	"../../docs/testing.md":          "TestTestingLimits in internal/operate/cli",
	"../../docs/page.md":             "the tests in the directory browser",
}

// here runs the commands: a stream ends after some time, which is no failure, and diff finds the files that it compares.
const here = `
	curl() { command curl -sS --fail-with-body --max-time 2 --unix-socket "$ADMIN" "$@" || test $? = 28; }
	caddy() {
		if [ "$2" = watch ]; then timeout 1 "$CADDY" "$@" --address "unix/$ADMIN" || test $? = 124
		elif [ "$2" = diff ]; then (
			cd "$(mktemp -d)" && printf 'http://example.com {\n\trate_limit {\n\t\tzone z {\n\t\t\trate 5/1m\n\t\t}\n\t}\n}\n' > Caddyfile
			sed s/5/9/ Caddyfile > Caddyfile.old
			echo '192.0.2.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "x"' > access.log
			command "$CADDY" "$@" )
		else command "$CADDY" "$@" --address "unix/$ADMIN"; fi
	}
	`

// TestCommandsInTheDocs runs every line of every page that asks the admin endpoint, with curl or
// caddy rate-limit, but those of the pages that another test follows.
func TestCommandsInTheDocs(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone clients {
				key {client_ip}
				rate 100/1m
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
				rate 10/1h
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
			`+harness.Memory+`
		}
		respond ok`))
	fence, question := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$"), regexp.MustCompile(`(?m)^(curl .*/rate_limit/|(?:\./)?caddy rate-limit )`)
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/migrate/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, some...)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if follows[page] != "" {
			if !question.Match(text) {
				t.Errorf("%s has no commands for %s", page, follows[page])
			}
			continue
		}
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				if !question.MatchString(line) {
					continue
				}
				found++
				if output, err := s.Shell(here + line); err != nil || strings.Contains(output, "cannot be looked at") {
					t.Errorf("%s: %s%v\n%s", page, line, err, output)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("found just %d commands", found)
	}
}
