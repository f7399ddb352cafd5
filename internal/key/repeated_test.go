package key

import (
	"net/http"
	"strings"
	"testing"
)

// TestManyQuotesAndEscapes: a client may write quotes and escapes within each other. A request
// of a megabyte of them is read in time in proportion to its length, and what stays as it is
// stays so when it is read again.
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
		if got, err := p.one(r, false); err != nil || got != value || p.clean(got) != got {
			t.Errorf("of %d bytes, %.20s: got %d bytes (%v), want them as they are", len(value), value, len(got), err)
		}
	}
	for value, want := range map[string]string{`"s%33"`: "s3", `%22"s%2533"%22`: "s3", `""s3""`: "s3"} {
		if got := p.clean(value); got != want || p.clean(got) != got {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

// TestManyValuesJoined: the same holds where there are as many values as a request has room for.
func TestManyValuesJoined(t *testing.T) {
	const most = 1 << 19
	p := newRepeatable("http.request.cookie.session")
	r := &http.Request{Header: http.Header{"Cookie": {strings.Repeat("session;", most)}}}
	if got, err := p.one(r, true); err != nil || got != strings.Repeat(",", most-1) {
		t.Errorf("got %d bytes (%v), want %d commas", len(got), err, most-1)
	}
}
