package body

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// trailing is a body behind which trailers come, as a server of net/http adds them.
type trailing struct {
	io.Reader
	to http.Header
}

func (b *trailing) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		maps.Copy(b.to, http.Header{"X-Sum": {"1"}, "X-Over": {"forged"}})
	}
	return n, err
}

func (*trailing) Close() error { return nil }

// TestRemoveTrailers: what is removed never comes, whether the body is looked at before or after. To look still shows all of the body.
func TestRemoveTrailers(t *testing.T) {
	const text = `{"n":1}`
	isOver := func(name string) bool { return name == "X-Over" }
	for _, peek := range []string{"never", "before", "after"} {
		all := http.Header{"X-Over": nil}
		r := &http.Request{Body: &trailing{strings.NewReader(text), all}, Trailer: all, ContentLength: -1}
		look := func() {
			if got, err := Peek(r, 100, time.Second); string(got) != text || err != nil {
				t.Fatalf("%s: %q, %v", peek, got, err)
			}
		}
		if peek == "before" {
			look()
		}
		RemoveTrailers(r, isOver)
		if peek == "after" {
			look()
		}
		if seen := Seen(r, 100); string(seen) != map[bool]string{true: text}[peek != "never"] {
			t.Errorf("%s: seen is %q", peek, seen)
		}
		if _, announced := all["X-Over"]; announced {
			t.Errorf("%s: the trailer is announced", peek)
		}
		got, err := io.ReadAll(r.Body)
		if names := slices.Sorted(maps.Keys(all)); string(got) != text || err != nil || !slices.Equal(names, []string{"X-Sum"}) {
			t.Errorf("%s: %q, %v, trailers %q", peek, got, err, names)
		}
	}
}

// TestRemoveTrailersOfNothing: a request without a body, or without trailers, stays as it is.
func TestRemoveTrailersOfNothing(t *testing.T) {
	for _, r := range []*http.Request{
		{Trailer: http.Header{"X-Over": nil}, Body: http.NoBody},
		{Trailer: http.Header{}},
		{Body: io.NopCloser(strings.NewReader("x"))},
	} {
		before := r.Body
		RemoveTrailers(r, func(string) bool { return true })
		if r.Body != before {
			t.Errorf("the body of %+v is another one", r)
		}
	}
}
