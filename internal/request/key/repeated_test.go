package key

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

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
