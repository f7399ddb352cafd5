package walk_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
)

// TestMatchersInWords: matchers are described with their values, of bounded length, and a request that does not match
// is told the first matcher of each set that does not.
func TestMatchersInWords(t *testing.T) {
	for name, c := range map[string]struct {
		matchers string // JSON: sets
		words    string
		misses   string // of GET http://a.test/p, separated by "; "
		hit      string
	}{
		"none":         {`[]`, "", "", ""},
		"a path":       {`[{"path":["/p","/q*"]}]`, "path /p /q*", "", "path /p /q*"},
		"sorted words": {`[{"path":["/x"],"method":["GET"]}]`, "method GET, path /x", "path /x", ""},
		"sets": {
			`[{"path":["/x"]},{"host":["b.test"]},{"path":["/p"]}]`, "path /x or host b.test or path /p", "path /x; host b.test", "path /p",
		},
		"a header":  {`[{"header":{"X-A":["b"],"X-C":["d"]}}]`, "header X-A b X-C d", "header X-A b X-C d", ""},
		"not":       {`[{"not":[{"path":["/p"]},{"path":["/x"]}]}]`, "not path /p or path /x", "not path /p or path /x", ""},
		"TLS":       {`[{"tls":{"handshake_complete":true}}]`, "tls handshake_complete true", "tls handshake_complete true", ""},
		"cut at 60": {`[{"path":["/` + strings.Repeat("ä", 40) + `"]}]`, "path /" + strings.Repeat("ä", 27) + "...", "path /" + strings.Repeat("ä", 27) + "...", ""},
		"what fails": {
			`[{"expression":"int({http.request.host}) > 1"}]`, "expression int({http.request.host}) > 1", "expression int({http.request.host}) > 1", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := load(t, fmt.Appendf(nil, `{"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},
				"routes":[{"match":%s,"handle":[]}]}}}}}`, c.matchers), "")
			sets := server.Routes[0].MatcherSets
			r := caddyhttp.PrepareRequest(get("GET", "http://a.test/p")(), caddy.NewReplacer(), httptest.NewRecorder(), server)
			match := caddyhttp.MatcherSets.AnyMatchWithError
			misses := strings.Join(walk.Misses(sets, r, match), "; ")
			if words, hit := walk.Describe(sets), walk.Hit(sets, r, match); words != c.words || misses != c.misses || hit != c.hit {
				t.Errorf("words %q\nmisses %q\nhit %q", words, misses, hit)
			}
		})
	}
}
