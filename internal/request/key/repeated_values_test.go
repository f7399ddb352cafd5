package key_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// repeats are requests that have the value s3, repeated or beside other values, by the placeholder
// {http.request.<placeholder>} that a key is made of.
var repeats = map[string][]struct {
	request string
	want    int // 400 if there are different values, 429 if the key is s3, 200 if it is another key
}{
	"header.X-Api-Key": {
		{"X-Api-Key: s3|X-Api-Key: r1", 400},
		{"X-Api-Key: r1|X-Api-Key: s3", 400},
		{"x-api-key: s3|X-API-KEY: s3", 429}, // the same key, whichever value the upstream reads
		{"X-Api-Key: s3|X-Api-Key: \ts3 ", 429},
		{"X-Api-Key: s3|X-Api-Key: S3", 400},
		{"X-Api-Key: |X-Api-Key: s3", 400},
		{"X-Api-Key: s3|X-Api-Key: ", 400},
		{"X-Api-Key: s3|X-Api-Keys: r1", 429},
		{"X-Api-Key: s3,r2", 200}, // one value to the upstream too
		{"X-Other: r1|X-Other: r2", 200},
		{"X-Api-Key: |X-Api-Key: ", 429}, // the same as no field
		{"X-Api-Key:   s3", 429},         // HTTP/2 and HTTP/3 leave spaces around a value
	},
	"uri.query.key": {
		{"?key=s3&key=r1", 400},
		{"?key=r1&a=b&key=s3", 400},
		{"?key=s3&key=s3", 429},
		{"?key=s3&key=%733", 429},
		{"?key=s3;KEY=s3", 429},
		{"?key=s3&%6bey=r1", 400},
		{"?key=s3&key", 400},
		{"?key=r1&a=b;key=s3", 400}, // to some parsers ; separates parameters
		{"?key=s3&key=%zz", 400},
		{"?key=s3&KEY=r1&key2=r1", 400}, // to some parsers the names are equal
		{"?key=s3&key2=r1", 429},
		{"?KEY=s3", 429},
		{"?key=s3" + strings.Repeat("&", 10_000), 429}, // net/http gives up, other parsers do not
		{"?q=a;b&key=s3", 429},
		{"?a=b&a=c", 200},
	},
	"cookie.session": {
		{"Cookie: session=s3; session=r1", 400},
		{"Cookie: session=s3|Cookie: session=r1", 400},
		{"Cookie: Session=r1; session=s3", 400}, // Caddy's placeholder has the first one
		{"Cookie: session=s3;session =r1", 400},
		{"Cookie: session=s3; session=s3", 429},
		{`Cookie: session=s3|Cookie: Session="s%33"`, 429},
		{"Cookie: session=s3; sessions=r1", 429},
		{"Cookie: a=b; a=c", 200},
		{"Cookie: session= s3", 429},
		{`Cookie: session="s3"`, 429},
		{"Cookie: session=s%33", 429},
		{`Cookie: session="\163\063"`, 429}, // Python unescapes between quotes
		{`Cookie: session="\s3"`, 429},
		{`Cookie: session="s\063"; session=r1`, 400},
		{"Cookie: session=s3" + strings.Repeat("; a", 3000), 429},
	},
}

// requestOf makes a request from a text of repeats.
func requestOf(text string) *http.Request {
	target, fields := "/", text
	if strings.HasPrefix(text, "?") {
		target, fields = "/"+text, ""
	}
	r := caddytest.RequestTo("a.test", target)
	for field := range strings.SplitSeq(fields, "|") {
		if name, value, ok := strings.Cut(field, ": "); ok {
			r.Header.Add(name, value)
		}
	}
	return r
}

// requestOnce is a request that has s3 once.
func requestOnce(placeholder string) *http.Request {
	return requestOf(map[string]string{
		"header.X-Api-Key": "X-Api-Key: s3", "uri.query.key": "?key=s3", "cookie.session": "Cookie: session=s3",
	}[placeholder])
}

// TestRepeatedValuesMakeNoNewKey: a client whose limit is used up gets no new limit by sending more
// values beside its key, because an upstream may read the first value or the last.
func TestRepeatedValuesMakeNoNewKey(t *testing.T) {
	for placeholder, cases := range repeats {
		for _, key := range []string{"{http.request.%s}", "key-{http.request.%s}", "{http.request.method} {http.request.%s}"} {
			key = fmt.Sprintf(key, placeholder)
			ctx := caddytest.Config(t)
			h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"repeated": {"key": "`+key+`", "max_events": 1, "window": "1h"}}}`)
			if first, second := caddytest.Status(h, requestOnce(placeholder)), caddytest.Status(h, requestOnce(placeholder)); first != 200 || second != 429 {
				t.Fatalf("%s: got %d and %d, want 200 and 429", key, first, second)
			}
			const count = "decisions_total{outcome=rejected,zone=repeated}"
			rejected := caddytest.Scrape(t, ctx)[count]
			for _, c := range cases {
				if got := caddytest.Status(h, requestOf(c.request)); got != c.want {
					t.Errorf("key %s, %s: got %d, want %d", key, c.request, got, c.want)
				}
				if c.want == 400 {
					rejected++
				}
			}
			if got := caddytest.Scrape(t, ctx)[count]; got != rejected {
				t.Errorf("key %s: %v requests count as rejected, want %v", key, got, rejected)
			}
			caddytest.CleanUp(t, h)
		}
	}
}

// TestRepeatedValuesAndOtherPolicies: block and exempt come first, a dry run refuses nothing, other
// zones are not charged.
func TestRepeatedValuesAndOtherPolicies(t *testing.T) {
	for _, c := range []struct {
		zone string
		want int
	}{
		{``, 400},
		{`, "missing_key": "reject"`, 400},
		{`, "missing_key": "skip"`, 400},
		{`, "exempt": [{"path": ["/"]}]`, 200},
		{`, "block": [{"path": ["/"]}], "exempt": [{"path": ["/"]}]`, 403},
		{`, "enforce": 0`, 200},
		{`, "enforce": 100`, 400},
	} {
		ctx := caddytest.Config(t)
		h := caddytest.LoadInto(t, ctx, `{"rate_limits": {
			"all": {"max_events": 1, "window": "1h"},
			"keys": {"key": "{http.request.header.X-Api-Key}", "max_events": 9, "window": "1h"`+c.zone+`}}}`)
		r := requestOf("X-Api-Key: |X-Api-Key: s3")
		if got := caddytest.Status(h, r); got != c.want {
			t.Errorf("%s: got %d, want %d", c.zone, got, c.want)
		}
		if got := caddytest.Scrape(t, ctx)["decisions_total{outcome=not_charged,zone=all}"]; (got == 1) != (c.want >= 400) {
			t.Errorf("%s: zone all has %v requests with outcome not_charged", c.zone, got)
		}
		if got := caddytest.Status(h, caddytest.RequestTo("a.test", "/other")); (got == 429) != (c.want == 200) {
			t.Errorf("%s: the next request gets %d; the other zone must be charged only if the first one passed", c.zone, got)
		}
		caddytest.CleanUp(t, h)
	}
}

// TestRepeatedValuesOfLimits: repeating a field gets around no plan, cost or limit that comes from
// the field. The name of a plan may be repeated.
func TestRepeatedValuesOfLimits(t *testing.T) {
	for _, c := range []struct {
		zone         string
		equal, other int
	}{
		{`"plan": {"of": "{http.request.header.X}", "plans": {"5": {"max_events": 1, "window": "1h"}, "free": {"unlimited": true}}, "default": "free"}`, 429, 400},
		{`"max_events": 9, "window": "1h", "cost": "{http.request.header.X}"`, 403, 403},
		{`"max_events": 9, "window": "1h", "cost": "{http.request.header.X} 0"`, 403, 403},
		{`"max_events": "{http.request.header.X}", "window": "1h"`, 403, 403},
		{`"max_events": "{http.request.header.X} 1000", "window": "1h"`, 403, 403},
		{`"algorithm": "token_bucket", "max_events": 9, "window": "1h", "burst": "{http.request.header.X} 1000"`, 403, 403},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"limited": {`+c.zone+`}}}`)
		caddytest.Status(h, requestOf("X: 5"))
		for text, want := range map[string]int{"X: 5|X: 5": c.equal, "X: 5|X: 6": c.other, "X: 5|X: ": c.other} {
			if got := caddytest.Status(h, requestOf(text)); got != want {
				t.Errorf("%s: %s: got %d, want %d", c.zone, text, got, want)
			}
		}
		caddytest.CleanUp(t, h)
	}
}
