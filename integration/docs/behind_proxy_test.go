//go:build deep

package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestBehindAProxyByHand: the commands of docs/behind-a-proxy.md tell a Caddy that believes its proxy alone
// from one that believes everybody.
func TestBehindAProxyByHand(t *testing.T) {
	t.Parallel()
	page := harness.ReadPage(t, "../../docs/behind-a-proxy.md")
	config := regexp.MustCompile("(?ms)^```caddyfile\n(.*?)^```$").FindStringSubmatch(page)[1]
	_, part, _ := strings.Cut(page, "## Find out whether it is right")
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(part, -1) {
		commands = append(commands, block[1])
	}
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	site := regexp.MustCompile(`(?m)^example\.com \{$`).ReplaceAllString(config, ":80 {\nbind fd/3")
	site = strings.Replace(site, "{\n", "{\nadmin unix/{$ADMIN}\npersist_config off\nauto_https off\n", 1)
	site = strings.ReplaceAll(site, "localhost:9000", b.Address)
	s := harness.StartCaddy(t, site)
	here := "curl() { command curl --connect-to ::" + s.Address + ` "$@"; }
		caddy() { "$CADDY" "$@" --address "unix/$ADMIN" || true; }
		`
	sent := strings.NewReplacer("https://", "http://", "203.0.113.7", "127.0.0.1").Replace(strings.Join(commands, ""))
	anybody := strings.NewReplacer("10.0.0.5 10.0.0.6", "0.0.0.0/0", "trusted_proxies_strict", "", "zone clients", "zone wrong").Replace(site)
	for _, c := range []struct {
		config, key string
		warned      bool
	}{
		{site, "127.0.0.1", false},
		{anybody, "198.51.100.1", true},
	} {
		s.MustLoad(c.config)
		output, err := s.Shell(here + sent)
		for _, key := range []string{"127.0.0.1", "198.51.100.1"} {
			used := regexp.MustCompile(`(?m)(\d+) of 100 .* ` + regexp.QuoteMeta(key) + `$`).FindStringSubmatch(output)
			if used == nil || (used[1] == "1") != (key == c.key) || (used[1] == "0") != (key != c.key) {
				t.Errorf("%s has used %q, want 1 for %s and 0 for the other", key, used, c.key)
			}
		}
		if err != nil || strings.Contains(output, "name only your proxies in trusted_proxies") != c.warned {
			t.Errorf("%v, want a warning: %v, in\n%s", err, c.warned, output)
		}
	}
}
