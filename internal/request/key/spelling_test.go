package key

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// tester is a [testing.T] or a [rapid.T].
type tester interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// keyOf returns the key of a request, and its template.
func keyOf(t tester, text string, r *http.Request) (string, *Template) {
	t.Helper()
	k, err := New(text, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	request := placeholder.RequestOf(r)
	key, err := k.Expand(&request)
	if err != nil {
		t.Fatal(err)
	}
	return key, k
}

// normalized are the placeholders whose values are normalized.
var normalized = []string{
	"http.request.host", "http.request.hostport", "http.request.host.labels.0", "http.request.host.labels.1", "http.request.host.labels.7",
	"http.request.uri.path", "http.request.uri.path.dir", "http.request.uri.path.file", "http.request.uri.path.file.base", "http.request.uri.path.file.ext",
	"http.request.uri.path.0", "http.request.uri.path.1", "http.request.uri.path.7",
	"http.request.orig_uri.path", "http.request.orig_uri.path.dir", "http.request.orig_uri.path.file",
	"http.request.orig_uri.path.0",
}

// TestSpellingsOfAPathAreOneKey: all spellings that Caddy's matcher treats as one path have one key,
// whichever placeholder of the path the key has.
func TestSpellingsOfAPathAreOneKey(t *testing.T) {
	spellings := []string{
		"/users/login.php", "/USERS/LOGIN.PHP", "//users/login.php", "/users//login.php", "/users/./login.php", "/./users/login.php",
		"/a/../users/login.php", "/users/a/../login.php", "/users/login.php/.", "/users/login.php/x/..", "/../users/login.php",
		"/users%2flogin.php", "/users%2Flogin.php", "/%75sers/login%2ephp", "/users/%2e/login.php", "/a/%2e%2e/users/login.php",
		"http://a.test/users/login.php", "http://a.test/Users//login.php", "/users/login.php?",
	}
	plain := caddytest.RequestTo("a.test", spellings[0])
	for _, placeholder := range normalized {
		want, _ := keyOf(t, "{"+placeholder+"}", plain)
		for _, spelling := range spellings {
			r := caddytest.RequestTo("a.test", spelling)
			if !(caddyhttp.MatchPath{"/users/login.php"}).Match(r) {
				t.Fatalf("%s: for Caddy's matcher this is another path", spelling)
			}
			if got, _ := keyOf(t, "{"+placeholder+"}", r); got != want {
				t.Errorf("{%s} of %s: got %q, want %q", placeholder, spelling, got, want)
			}
		}
	}
	for placeholder, want := range map[string]string{
		"http.request.uri.path": "/users/login.php", "http.request.uri.path.dir": "/users/",
		"http.request.uri.path.file": "login.php", "http.request.uri.path.file.base": "login", "http.request.uri.path.file.ext": ".php",
		"http.request.uri.path.0": "users", "http.request.uri.path.1": "login.php", "http.request.uri.path.2": "",
	} {
		if got, _ := keyOf(t, "{"+placeholder+"}", plain); got != want {
			t.Errorf("{%s}: got %q, want %q", placeholder, got, want)
		}
	}
}

// TestNoPathIsTheRoot: a target without a path has the keys of /, whichever placeholder of the path the key has. The text
// after the scheme of a URL without a host is no path, nor is the host of a CONNECT.
func TestNoPathIsTheRoot(t *testing.T) {
	for _, placeholder := range normalized {
		for query, targets := range map[string][]string{
			"":    {"http://a.test", "http://a.test/", "http:", "http://", "http:/", "//", "/.", "/a/.."},
			"?x=": {"http://a.test?x=", "http://a.test/?x=", "x:?x=", "//?x="},
		} {
			want, _ := keyOf(t, "{"+placeholder+"}", caddytest.RequestTo("a.test", "/"+query))
			for _, target := range targets {
				if got, _ := keyOf(t, "{"+placeholder+"}", caddytest.RequestTo("a.test", target)); got != want {
					t.Errorf("{%s} of %s: got %q, want %q", placeholder, target, got, want)
				}
			}
		}
	}
	for target, want := range map[string]string{
		"x:v1/chat": "/", "x:v1?u=http://h/login": "/", "x:y://h/login": "/", "mailto:a@b?x": "/", "http:/Login": "/login",
		"a.test:80": "/", "*": "/*",
	} {
		if got, _ := keyOf(t, "{http.request.orig_uri.path}", caddytest.RequestTo("a.test", target)); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// TestSpellingsOfAHostAreOneKey is the same for hosts.
func TestSpellingsOfAHostAreOneKey(t *testing.T) {
	for want, spellings := range map[string][]string{
		"api.site.test": {
			"api.site.test", "API.site.TEST", "api.site.test.", "api.site.test:8061", "Api.Site.Test.:80", "api.site.test:", "api.\u017fite.test",
		},
		"::1": {"[::1]", "[::1]:80"},
		"":    {"", ".", ":80"},
	} {
		for _, placeholder := range []string{"http.request.host", "http.request.hostport"} {
			for _, spelling := range spellings {
				if got, _ := keyOf(t, "{"+placeholder+"}", caddytest.RequestTo(spelling, "/")); got != want {
					t.Errorf("{%s} of %q: got %q, want %q", placeholder, spelling, got, want)
				}
			}
		}
	}
	for label, want := range []string{"test", "site", "api", "", ""} {
		for _, host := range []string{"api.site.test", "API.Site.test.", "api.site.test.:80"} {
			name := "{http.request.host.labels." + string(rune('0'+label)) + "}"
			if got, _ := keyOf(t, name, caddytest.RequestTo(host, "/")); got != want {
				t.Errorf("%s of %s: got %q, want %q", name, host, got, want)
			}
		}
	}
}

// FuzzSpellings runs the checks below on any two hosts or targets.
func FuzzSpellings(f *testing.F) {
	for _, seed := range [][2]string{
		{"/login", "/LOGIN"},
		{"/login", "//login"},
		{"/login", "/./login"},
		{"/login", "/a/../login"},
		{"/login", "/login%2f"},
		{"/login/", "/login%2f"},
		{"/login", "/log%69n"},
		{"/login/", "/login/./"},
		{"/", "/.."},
		{"*", "/*"},
		{"/link", "/lin\u212a"},
		{"/\xff", "/\xfe"},
		{"/a%252fb", "/a%2fb"},
		{"http://h?b", "/b"},
		{"/a//..", "/a b"},
		{"a.test", "A.TEST"},
		{"a.test:80", "a.test."},
		{"[::1]", "[::1.]:80"},
		{"site", "\u017fite"},
		{"i", "\u0130"},
		{"", "."},
		{"?x", "/%zz"},
		{"://", "/a://b"},
		{"/\u00e9%c3", "/a?"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, one, two string) { checkSpellings(t, one, two) })
}

// checkSpellings runs all checks of spellings on two texts.
func checkSpellings(t tester, one, two string) {
	t.Helper()
	checkPathKeys(t, "/"+one, "/"+two)
	checkPathKeys(t, one, two)
	checkHostKeys(t, one, two)
	checkKeysFromText(t, one, two)
}

// checkPathKeys compares keys with Caddy's own path matcher: two requests have the same key if and
// only if a pattern for the one matches the other.
func checkPathKeys(t tester, one, two string) {
	t.Helper()
	r1, r2 := caddytest.RequestTo("a.test", one), caddytest.RequestTo("a.test", two)
	if r1 == nil || r2 == nil {
		return
	}
	key1, _ := keyOf(t, "{http.request.uri.path}", r1)
	key2, _ := keyOf(t, "{http.request.uri.path}", r2)
	if key1 == "" || strings.ContainsAny(key1, `*?[\%{`) {
		return // for the matcher this is more than a literal path
	}
	pattern := caddyhttp.MatchPath{key1}
	if err := pattern.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	matches := func(r *http.Request) bool {
		yes, err := clientip.MatchAny(caddyhttp.MatcherSets{{pattern}}, r)
		return yes && err == nil
	}
	if !matches(r1) {
		t.Errorf("%q has the key %q, which is another path for the matcher", one, key1)
	}
	if alike := matches(r2); alike != (key1 == key2) {
		t.Errorf("%q and %q: the keys are %q and %q, and the pattern matches: %v", one, two, key1, key2, alike)
	}
}

// checkHostKeys is the same for hosts. Keys also ignore the dot at the end.
func checkHostKeys(t tester, one, two string) {
	t.Helper()
	r1, r2 := caddytest.RequestTo(one, "/"), caddytest.RequestTo(two, "/")
	host := strings.Trim(r1.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).ReplaceKnown("{http.request.host}", ""), "[]")
	pattern := caddyhttp.MatchHost{host}
	if strings.ContainsAny(host, "*{") || !pattern.Match(r1) || !pattern.Match(r2) {
		return
	}
	for _, name := range []string{"{http.request.host}", "{http.request.hostport}", "{http.request.host.labels.0}"} {
		key1, _ := keyOf(t, name, r1)
		if key2, _ := keyOf(t, name, r2); key1 != key2 {
			t.Errorf("%q and %q are one host for the matcher, but the keys of %s are %q and %q", one, two, name, key1, key2)
		}
	}
}

// checkKeysFromText: the key of a request, written as text, is the key of the same state.
func checkKeysFromText(t tester, host, target string) {
	t.Helper()
	r := caddytest.RequestTo(host, target)
	for _, placeholder := range normalized {
		if r != nil {
			key, k := keyOf(t, "{"+placeholder+"}", r)
			if written, err := k.FromText(key); err != nil || written != key {
				t.Errorf("{%s} of %q %q: the key is %q, but %q when it is written as text: %v", placeholder, host, target, key, written, err)
			}
		}
		fromText := spellingOf(placeholder).text
		for _, text := range []string{host, target} {
			if once := fromText(text); fromText(once) != once {
				t.Errorf("{%s}: %q becomes %q, and this %q", placeholder, text, once, fromText(once))
			}
		}
	}
}

// TestKeysOfOddRequests runs the checks above on requests with odd hosts and paths.
func TestKeysOfOddRequests(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"/", "/", "//", ".", "..", "/./", "/../", "a", "A", "k", "s", "\u212a", "\u017f", "\u0130", "\u00e9", "\u00c9", "\xff", "%2f", "%2F", "%2e",
		"%41", "%61", "%25", "%2541", "%3f", "%c3%89", "%ff", "%00", "%20", "%5c", "?", "??", "#", ";", ":", "*", "+", "~", "[", "]", ":80", "http://h", "@",
	})
	text := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 7).Draw(rt, "pieces"), "")
	})
	deep.Property(t, 500, func(rt *rapid.T) { checkSpellings(rt, text.Draw(rt, "one"), text.Draw(rt, "two")) })
}
