package integration_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestBehindAProxyByHand: the commands of docs/behind-a-proxy.md tell a Caddy that believes its proxy alone
// from one that believes everybody.
func TestBehindAProxyByHand(t *testing.T) {
	t.Parallel()
	page := readPage(t, "../docs/behind-a-proxy.md")
	config := regexp.MustCompile("(?ms)^```caddyfile\n(.*?)^```$").FindStringSubmatch(page)[1]
	_, part, _ := strings.Cut(page, "## Find out whether it is right")
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(part, -1) {
		commands = append(commands, block[1])
	}
	b := startBackend(t, upstream)
	site := regexp.MustCompile(`(?m)^example\.com \{$`).ReplaceAllString(config, ":80 {\nbind fd/3")
	site = strings.Replace(site, "{\n", "{\nadmin unix/{$ADMIN}\npersist_config off\nauto_https off\n", 1)
	site = strings.ReplaceAll(site, "localhost:9000", b.address)
	s := startCaddy(t, site)
	here := "curl() { command curl --connect-to ::" + s.address + ` "$@"; }
		caddy() { "$CADDY" "$@" --address "unix/$ADMIN" || true; }
		`
	anybody := strings.NewReplacer("10.0.0.5 10.0.0.6", "0.0.0.0/0", "trusted_proxies_strict", "", "zone clients", "zone wrong").Replace(site)
	for _, c := range []struct {
		config, key string
		warned      bool
	}{
		{site, "127.0.0.1", false},
		{anybody, "198.51.100.1", true},
	} {
		s.mustLoad(c.config)
		output, err := s.shell(here + strings.ReplaceAll(strings.Join(commands, ""), "https://", "http://"))
		if top, _, _ := strings.Cut(output, "\n\n"); err != nil || !strings.Contains(top, c.key) || strings.Contains(output, "name only your proxies in trusted_proxies") != c.warned {
			t.Errorf("%v, want the key %s in\n%s", err, c.key, output)
		}
	}
}
