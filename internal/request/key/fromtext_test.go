package key

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestKeysFromText: text that people write becomes the key of a request, or an error that says what
// to write.
func TestKeysFromText(t *testing.T) {
	const address, pair = "{http.vars.client_ip}", "{http.vars.client_ip} {http.request.uri.path}"
	for _, c := range []struct {
		template string
		ipv4     int
		values   []string // one is the text of a whole key
		want     string   // the key, or a part of the error
	}{
		{address, 0, []string{"203.0.113.7"}, "203.0.113.7"},
		{address, 0, []string{"203.0.113.7/32"}, "203.0.113.7"},
		{address, 0, []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{address, 0, []string{"2001:db8::1"}, "2001:db8::/64"},
		{address, 0, []string{"2001:db8::/64"}, "2001:db8::/64"},
		{address, 0, []string{"2001:db8::1:2:0:0/120"}, "2001:db8::/64"},
		{address, 0, []string{"2001:db8::1%eth0"}, "2001:db8::/64"},
		{address, 24, []string{"203.0.113.7"}, "203.0.113.0/24"},
		{address, 24, []string{"203.0.113.0/24"}, "203.0.113.0/24"},
		{address, 0, []string{""}, ""},
		{address, 0, []string{"@"}, "@"},
		{address, 0, []string{"203.0.113.0/24"}, `"203.0.113.0/24" is a network, not an address: a key is one address; for networks, use the options block`},
		{address, 24, []string{"203.0.0.0/16"}, "a key is one /24 network"},
		{address, 0, []string{"2001:db8::/32"}, "a key is one /64 network"},
		{address, 0, []string{"203.0.113.300"}, `"203.0.113.300" is not an address`},
		{address, 0, []string{"203.0.113.7:443"}, "did you mean 203.0.113.7?"},
		{address, 0, []string{"alice"}, `"alice" is not an address`},
		{pair, 0, []string{"203.0.113.7"}, "the key is {client_ip} {path}: give each part, got 1"},
		{pair, 0, []string{"203.0.113.7 /search"}, "the key is {client_ip} {path}"},
		{pair, 0, []string{"11:203.0.113.7 7:/search"}, "11:203.0.113.7 7:/search"},
		{pair, 0, []string{"11:203.0.113.7 07:/search"}, "the key is {client_ip} {path}"},
		{pair, 0, []string{"203.0.113.7", "/Search"}, "11:203.0.113.7 7:/search"},
		{pair, 0, []string{"2001:db8::1", "/"}, "13:2001:db8::/64 1:/"},
		{pair, 0, []string{"203.0.113.0/24", "/"}, "is a network"},
		{pair, 0, []string{"203.0.113.7", "/", "a"}, "the key is {client_ip} {path}: give each part, got 3"},
		{"{http.vars.a}{http.vars.b}{http.request.header.C}", 0, []string{"a"}, "the key is {vars.a} {vars.b} {header.C}: give each part"},
		{"ip:" + address, 0, []string{"ip:203.0.113.7"}, "ip:203.0.113.7"},
		{"ip:" + address, 0, []string{"ip:bob"}, `"bob" is not an address`},
		{"ip:" + address, 0, []string{"203.0.113.7"}, `all of its keys have the form ip:{client_ip}: did you mean "ip:203.0.113.7"?`},
		{"all", 0, []string{"all"}, "all"},
		{"all", 0, []string{"bob"}, "it has no key"},
		{"", 0, []string{""}, ""},
		{"", 0, []string{"bob"}, "it has no key"},
		{"", 0, []string{"bob", "/"}, "it has no key"},
	} {
		k, err := New(c.template, c.ipv4, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if len(c.values) == 1 {
			got, err = k.FromText(c.values[0])
		} else {
			got, err = k.FromValues(c.values)
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("key %s, %q: got %s, want %s", c.template, c.values, got, c.want)
		}
		if err != nil {
			continue
		}
		if _, err := k.FromKey(got); err != nil {
			t.Errorf("key %s, %q: the key %q is refused: %v", c.template, c.values, got, err)
		}
	}
	k, _ := New(pair, 0, 0)
	if _, err := k.FromKey("203.0.113.7"); err == nil || !strings.Contains(err.Error(), "all keys have the form {client_ip} {path}") {
		t.Errorf("got %v", err)
	}
}

// TestValuesOfKeys: the values of a key can be found in it, even in the beginning of a key.
func TestValuesOfKeys(t *testing.T) {
	deep.Property(t, 1, func(rt *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("01:-x ")))
		template := text.Draw(rt, "before") + "{http.vars.a}" + text.Draw(rt, "between") + "{http.vars.b}" + text.Draw(rt, "after")
		k, err := New(template, 0, 0)
		if err != nil {
			rt.Fatal(err)
		}
		values := []string{text.Draw(rt, "a"), text.Draw(rt, "b")}
		key, err := k.FromValues(values)
		if err != nil {
			rt.Fatal(err)
		}
		if got, whole := k.Values(key); !whole || !slices.Equal(got, values) {
			rt.Fatalf("key %q of %s has the values %q, got %q", key, template, values, got)
		}
		beginning := key[:rapid.IntRange(0, len(key)).Draw(rt, "length")]
		got, whole := k.Values(beginning)
		if whole && beginning != key {
			rt.Fatalf("%q is no whole key of %s", beginning, template)
		}
		for i := range got {
			if !strings.HasPrefix(values[i], got[i]) {
				rt.Fatalf("%q, the beginning of %q, has the values %q, got %q", beginning, key, values, got)
			}
		}
		if !k.HasPart(key, values[1]) || k.HasPart(key, values[1]+values[0]+"y") {
			rt.Fatalf("key %q of %s: wrong parts", key, template)
		}
	})
}

// TestManyQuotesAndEscapes: a client may nest quotes and escapes. A megabyte of them is read in
// linear time, and a value that is left as it is stays so when it is read again.
func TestManyQuotesAndEscapes(t *testing.T) {
	const most = 1 << 20
	p := newRepeatable("http.request.cookie.session")
	for _, value := range []string{
		strings.Repeat(`"`, 20) + "s3" + strings.Repeat(`"`, 20),
		"%" + strings.Repeat("25", 20) + "733",
		strings.Repeat(`"`, most),
		"%" + strings.Repeat("25", most/2),
	} {
		r := &http.Request{Header: http.Header{"Cookie": {"session=" + value}}}
		if got, err := p.value(r); err != nil || got != value || p.clean(got) != got {
			t.Errorf("of %d bytes, %.20s: got %d bytes (%v), want them as they are", len(value), value, len(got), err)
		}
	}
	for value, want := range map[string]string{`"s%33"`: "s3", `%22"s%2533"%22`: "s3", `""s3""`: "s3", `"\s\063"`: "s3", `"s3\"`: `s3\`, `"s\39"`: "s39"} {
		if got := p.clean(value); got != want || p.clean(got) != got {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

// TestManyValues: as many values as a request has room for are compared in linear time.
func TestManyValues(t *testing.T) {
	const most = 1 << 19
	p := newRepeatable("http.request.cookie.session")
	r := &http.Request{Header: http.Header{"Cookie": {strings.Repeat("session;", most) + "session=s3"}}}
	if got, err := p.value(r); err != p.err || got != "" {
		t.Errorf("got %d bytes (%v), want different values", len(got), err)
	}
}

// TestNamesAsPHPReadsThem: PHP replaces characters that the name of a variable cannot have with "_",
// so names with such characters are further values of the same name.
func TestNamesAsPHPReadsThem(t *testing.T) {
	for _, name := range []string{"api_key", "api.key", "API.key", "api%5bkey", "+api+key", "api_key%00.x", "%61pi_key"} {
		for _, named := range []string{"api_key", "api.key"} {
			p := newRepeatable("http.request.uri.query." + named)
			r := &http.Request{URL: &url.URL{RawQuery: named + "=r1&" + name + "=s3"}}
			if got, err := p.value(r); got != "r1" || err != p.err {
				t.Errorf("parameter %s, %s: got %q (%v), want r1 and an error", named, name, got, err)
			}
			p = newRepeatable("http.request.cookie." + named)
			r = &http.Request{Header: http.Header{"Cookie": {named + "=r1; " + name + "=s3"}}}
			if got, err := p.value(r); got != "r1" || err != p.err {
				t.Errorf("cookie %s, %s: got %q (%v), want r1 and an error", named, name, got, err)
			}
		}
	}
	for _, name := range []string{"api-key", "apikey", "api_key_", "api_key[]", "x.api_key"} {
		p := newRepeatable("http.request.uri.query.api_key")
		r := &http.Request{URL: &url.URL{RawQuery: "api_key=r1&" + name + "=s3"}}
		if got, err := p.value(r); got != "r1" || err != nil {
			t.Errorf("%s: got %q (%v), want r1 alone", name, got, err)
		}
	}
}
