package key

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

func expand(t testing.TB, template string, v4, v6 int, values map[string]string) string {
	t.Helper()
	k, err := New(template, v4, v6)
	if err != nil {
		t.Fatal(err)
	}
	key, err := k.Expand(requestWith(values))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// requestWith returns a request for which placeholders have these values.
func requestWith(values map[string]string) *placeholder.Request {
	bare, repl := httptest.NewRequest(http.MethodGet, "/", nil), caddy.NewEmptyReplacer()
	r := placeholder.RequestOf(caddyhttp.PrepareRequest(bare, repl, httptest.NewRecorder(), new(caddyhttp.Server)))
	for name, value := range values {
		field, isField := strings.CutPrefix(name, placeholder.HeaderPrefix)
		variable, isVariable := strings.CutPrefix(name, "http.vars.")
		switch {
		case isField:
			bare.Header.Set(field, value)
		case isVariable:
			r.Vars[variable] = value
		case name == "http.request.remote.host":
			r.RemoteAddr = value
		case name == "http.request.host":
			r.Host = value
		case name == "http.request.uri.path":
			r.URL.Path = value
		default:
			repl.Set(name, value)
		}
	}
	return &r
}

func TestKeyOfAnAddress(t *testing.T) {
	for _, c := range []struct {
		placeholder string
		v4, v6      int
		value, want string
	}{
		{"http.vars.client_ip", 0, 0, "203.0.113.7", "203.0.113.7"},
		{"http.vars.client_ip", 0, 0, "::ffff:203.0.113.7", "203.0.113.7"},
		{"http.vars.client_ip", 24, 0, "203.0.113.7", "203.0.113.0/24"},
		{"http.vars.client_ip", 24, 0, "::ffff:203.0.113.7", "203.0.113.0/24"},
		{"http.vars.client_ip", 0, 0, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"http.vars.client_ip", 0, 0, "2001:DB8:1:2::", "2001:db8:1:2::/64"},
		{"http.vars.client_ip", 0, 56, "2001:db8:1:2ff::1", "2001:db8:1:200::/56"},
		{"http.vars.client_ip", 0, 128, "2001:db8::1%eth0", "2001:db8::1"},
		{"http.request.remote.host", 0, 0, "fe80::1%eth0", "fe80::/64"},
		{"http.request.remote.host", 0, 0, "/run/caddy.sock", "/run/caddy.sock"},
		{"http.request.remote.host", 0, 0, "", ""},
		// What a client sends is text, unless the zone says that it is an address.
		{"http.request.header.X-Key", 0, 0, "2001:DB8::1", "2001:DB8::1"},
		{"http.request.header.X-Key", 16, 0, "203.0.113.7", "203.0.0.0/16"},
		{"http.request.header.X-Key", 16, 0, "2001:DB8::1", "2001:db8::1"},
		{"http.request.header.X-Key", 0, 64, "203.0.113.7", "203.0.113.7"},
		{"http.request.header.X-Key", 16, 64, "not an address", "not an address"},
	} {
		got := expand(t, "{"+c.placeholder+"}", c.v4, c.v6, map[string]string{c.placeholder: c.value})
		if got != c.want {
			t.Errorf("{%s} with prefixes %d, %d: %q becomes %q, want %q", c.placeholder, c.v4, c.v6, c.value, got, c.want)
		}
	}
}

func TestKeyTexts(t *testing.T) {
	values := map[string]string{"http.request.header.A": "x", "http.request.header.B": "", "http.vars.client_ip": "::1", "http.request.header.C": "2001:DB8::1"}
	for template, want := range map[string]string{
		"":                                 "",
		"static":                           "static",
		`\{escaped\}`:                      "{escaped}",
		"{http.request.header.A}":          "x",
		"{http.request.header.B}":          "",
		"pre-{http.request.header.A}-post": "pre-x-post",
		"{http.request.header.A}{http.request.header.B}":  "1:x0:",
		"{http.request.header.A}|{http.request.header.A}": "1:x|1:x",
		"{http.vars.client_ip} {http.request.header.C}":   "5:::/64 11:2001:DB8::1", // text is no address because there is one before it
	} {
		if got := expand(t, template, 0, 0, values); got != want {
			t.Errorf("%q: got %q, want %q", template, got, want)
		}
	}
}

// TestValuesCannotImitateOthers: different values never make the same key. (They can in
// envoyproxy/ratelimit, which joins values without escaping them.)
func TestValuesCannotImitateOthers(t *testing.T) {
	const template = "{http.request.header.A}-{http.request.header.B}"
	key := func(t testing.TB, a, b string) string {
		return expand(t, template, 0, 0, map[string]string{"http.request.header.A": a, "http.request.header.B": b})
	}
	if key(t, "x-y", "z") == key(t, "x", "y-z") {
		t.Error("one client can spend another's limit")
	}
	deep.Property(t, 1, func(rt *rapid.T) {
		draw := rapid.StringOf(rapid.RuneFrom([]rune("01:-x")))
		a1, b1, a2, b2 := draw.Draw(rt, "a1"), draw.Draw(rt, "b1"), draw.Draw(rt, "a2"), draw.Draw(rt, "b2")
		if (a1 != a2 || b1 != b2) && key(t, a1, b1) == key(t, a2, b2) {
			rt.Fatalf("(%q, %q) and (%q, %q) have one key", a1, b1, a2, b2)
		}
	})
}

// TestAddressBesideOtherValues: an address is cut to its prefix anywhere in the key.
func TestAddressBesideOtherValues(t *testing.T) {
	one := map[string]string{"http.vars.client_ip": "2001:db8::1", "http.request.uri.path": "/"}
	two := map[string]string{"http.vars.client_ip": "2001:db8::2", "http.request.uri.path": "/"}
	for _, template := range []string{"{http.vars.client_ip} {http.request.uri.path}", "ip:{http.vars.client_ip}"} {
		if a, b := expand(t, template, 0, 0, one), expand(t, template, 0, 0, two); a != b {
			t.Errorf("%s: one client has the keys %q and %q", template, a, b)
		}
		if a, b := expand(t, template, 0, 128, one), expand(t, template, 0, 128, two); a == b {
			t.Errorf("%s with ipv6_prefix 128: two addresses have the key %q", template, a)
		}
	}
}

func TestPrefixPlaceholders(t *testing.T) {
	for bits, ok := range map[string]bool{"24,64": true, "24": true, "64": false, "33,64": false, "24,129": false, "abc": false, "": false} {
		if _, err := New("{http.request.remote.host/"+bits+"}", 0, 0); (err == nil) != ok {
			t.Errorf("/%s: got %v", bits, err)
		}
	}
}

func TestUnknownPlaceholders(t *testing.T) {
	for name, suggestion := range map[string]string{
		"http.request.remote_ip":         "{http.vars.client_ip}",
		"http.request.remote.hots":       "{http.request.remote.host}",
		"http.request.headers.X-Tenant":  "{http.request.header.X-Tenant}",
		"http.request.header.X-Key:none": "{http.request.header.X-Key}",
		"http.request.header.":           "{http.request.header.NAME}",
		"http.request.cookies.sid":       "{http.request.cookie.sid}",
		"http.request.query.q":           "{http.request.uri.query.q}",
		"http.request.path.1":            "{http.request.uri.path.1}",
		"http.request.host.labels.":      "{http.request.host.labels.0}",
		"system.hostnam":                 "{system.hostname}",
		"client_ip":                      "{http.vars.client_ip}",
		"header.X-Tenant":                "{http.request.header.X-Tenant}",
		"path.0":                         "{http.request.uri.path.0}",
		"re.name.1":                      "{http.regexp.name.1}",
		"file":                           "{http.request.uri.path.file}",
	} {
		_, err := New("a-{"+name+"}", 0, 0)
		if err == nil || !strings.Contains(err.Error(), suggestion) || !strings.Contains(err.Error(), "{"+name+"}") {
			t.Errorf("{%s}: got %v, want an error that suggests %s", name, err, suggestion)
		}
	}
	for _, known := range []string{
		"http.vars.client_ip", "http.vars.anything", "http.request.header.X-Api-Key", "http.request.cookie.session",
		"http.request.uri.query.q", "http.request.uri.path.0", "http.request.remote.host/24,64", "http.request.host.labels.1",
		"http.request.tls.client.fingerprint", "http.request.tls.server_name", "http.request.body",
		"http.auth.user.id", "http.auth.user.email", "http.regexp.name.1", "http.matchers.file.relative", "http.error.status_code",
		"env.HOME", "system.hostname", "http.request.local.host", "file./etc/hostname", "file.hostname",
	} {
		_, err := New("{"+known+"}", 0, 0)
		if isKnown, _ := placeholder.Check(known, ""); err != nil || !isKnown {
			t.Errorf("{%s} is Caddy's: %v", known, err)
		}
	}
	for _, foreign := range []string{"geoip2.country_code", "my_map_output", "http.geoip.country"} {
		_, err := New("{"+foreign+"}", 0, 0)
		if isKnown, _ := placeholder.Check(foreign, ""); err != nil || isKnown {
			t.Errorf("{%s} may be another module's: %v", foreign, err)
		}
	}
}

// FuzzKeyTemplate: no template panics, and a key is what Caddy's own replacer makes of the template
// where both should agree.
func FuzzKeyTemplate(f *testing.F) {
	for _, seed := range []string{"", "{http.vars.client_ip}", `\{a\}{http.vars.x}`, "{", "}", "{}", "a{http.vars.x}b", `\`, `{\}`, "{{http.vars.x}}", "a{http.request.host}", "{http.request.uri.path}a", "a{http.request.remote.host}"} {
		f.Add(seed, "value")
		f.Add(seed, "value:80")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		k, err := New(template, 0, 0)
		if err != nil {
			return
		}
		values := make(map[string]string)
		for _, p := range k.Parts {
			if newRepeatable(p.Placeholder) != nil || p.spelled { // as TestRepeatedValuesMakeNoNewKey and FuzzSpellings test
				return
			}
			if p.Placeholder != "" {
				values[p.Placeholder] = value
			}
		}
		r := requestWith(values)
		key, _ := k.Expand(r)
		if k.lengthPrefixed || len(k.Parts) == 1 || strings.Contains(template, `\`) {
			return
		}
		if want := r.Replacer().ReplaceAll(template, ""); key != want {
			t.Errorf("%q with %q: got %q, Caddy makes it %q", template, value, key, want)
		}
	})
}

// FuzzMask: cutting a value to its prefix a second time changes nothing.
func FuzzMask(f *testing.F) {
	for _, seed := range []string{"203.0.113.7", "::ffff:1.2.3.4", "fe80::1%x", "1.2.3.4/24", "", "::", "a"} {
		f.Add(seed, 24, 56)
	}
	f.Fuzz(func(t *testing.T, key string, v4, v6 int) {
		p := prefixes{v4 & 31, v6 & 127}.forPlaceholder("http.vars.client_ip")
		once := p.apply(key)
		if twice := p.apply(once); twice != once {
			t.Errorf("%q: %q, then %q", key, once, twice)
		}
	})
}

// TestByNetwork: a key with a part of the client's address means a network, but an IPv6 /64 for a client.
func TestByNetwork(t *testing.T) {
	for _, c := range []struct {
		key  string
		v4   int
		v6   int
		want bool
	}{
		{"{http.vars.client_ip}", 0, 0, false},
		{"{http.vars.client_ip}", 32, 64, false},
		{"{http.vars.client_ip}", 24, 0, true},
		{"{http.vars.client_ip}", 0, 48, true},
		{"{http.request.host}", 0, 0, false},
	} {
		k, err := New(c.key, c.v4, c.v6)
		if err != nil || k.ByNetwork() != c.want {
			t.Errorf("%s /%d /%d: want %v, error %v", c.key, c.v4, c.v6, c.want, err)
		}
	}
}

// TestCleanValuesCostNothing: values in the usual form are not copied.
func TestCleanValuesCostNothing(t *testing.T) {
	for clean, values := range map[string][]string{
		"path": {"/", "/login", "/a/b.c/", "/api/v1/items/17", "/a-b_c~d"},
		"host": {"a.test", "www.example.com", "203.0.113.7", "::1"},
	} {
		normalize := map[string]func(string) string{"path": cleanPath, "host": cleanHost}[clean]
		for _, value := range values {
			if n := testing.AllocsPerRun(10, func() { normalize(value) }); n != 0 || normalize(value) != value {
				t.Errorf("%s %q: %v allocations, becomes %q", clean, value, n, normalize(value))
			}
		}
	}
}

// TestRootIsAKey: a request for / has a path, so its key is not the one of requests without a key, which missing_key may let
// pass.
func TestRootIsAKey(t *testing.T) {
	for template, empty := range map[string]string{
		"{http.request.uri.path}":                             "",
		"{http.request.orig_uri.path}":                        "",
		"at {http.request.uri.path.dir}":                      "at ",
		"{http.request.uri.path} {http.request.header.X-Key}": "0: 0:",
	} {
		k, err := New(template, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		key, err := k.Expand(requestWith(nil))
		if err != nil || key == k.Empty || k.Empty != empty {
			t.Errorf("%s: the key of a request for / is %q, %v, and that without a key %q", template, key, err, k.Empty)
		}
	}
}
