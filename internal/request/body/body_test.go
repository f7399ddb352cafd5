package body

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// tracked is a body that counts what is read, and whether it is closed.
type tracked struct {
	io.Reader
	read   int
	closed bool
}

func (b *tracked) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *tracked) Close() error {
	b.closed = true
	return nil
}

// TestPeek: whatever is looked at, the handlers behind read the same body, and no more than a byte above
// the limit is read before.
func TestPeek(t *testing.T) {
	broken := errors.New("connection reset")
	const most = maxBody
	for _, c := range []struct {
		size   int
		length int64 // what the header says, -1 for nothing
		broken bool
		want   string // the reason of the refusal
	}{
		{0, -1, false, ""},
		{1, 1, false, ""},
		{5000, -1, false, ""},
		{most, -1, false, ""},
		{most, most, false, ""},
		{most + 1, -1, false, tooLarge.Err.Error()},
		{most + 1, most + 1, false, tooLarge.Err.Error()},
		{3 * most, -1, false, tooLarge.Err.Error()},
		{5000, -1, true, broken.Error()},
		{5000, 6000, true, broken.Error()},
	} {
		for _, slow := range []bool{false, true} {
			text := strings.Repeat("0123456789", c.size/10+1)[:c.size]
			var from io.Reader = strings.NewReader(text)
			if c.broken {
				from = io.MultiReader(from, iotest.ErrReader(broken))
			}
			if slow {
				from = iotest.OneByteReader(from)
			}
			under := &tracked{Reader: from}
			r := &http.Request{Body: under, ContentLength: c.length}
			for range 2 { // the second zone sees the same
				seen, got := peek(r)
				if reason(got) != c.want || got == nil && string(seen) != text {
					t.Fatalf("%d bytes, length %d: %d bytes seen, %v, want %s", c.size, c.length, len(seen), got, c.want)
				}
			}
			if under.read > most+1 {
				t.Errorf("%d bytes were read", under.read)
			}
			all, err := io.ReadAll(r.Body)
			if string(all) != text || c.broken != (err != nil) || r.ContentLength != c.length {
				t.Errorf("%d bytes, length %d: the handler reads %d bytes, %v", c.size, c.length, len(all), err)
			}
			if err := r.Body.Close(); err != nil || !under.closed {
				t.Errorf("closed %v, %v", under.closed, err)
			}
		}
	}
}

// reason is why a body is refused.
func reason(r *Refusal) string {
	if r == nil {
		return ""
	}
	return r.Err.Error()
}

// TestPeekLater: a body that is being read is not looked at.
func TestPeekLater(t *testing.T) {
	text := strings.Repeat("x", 1000)
	r := &http.Request{Body: &tracked{Reader: strings.NewReader(text)}, ContentLength: -1}
	if seen, refusal := peek(r); refusal != nil || string(seen) != text {
		t.Fatalf("%d bytes, %v", len(seen), refusal)
	}
	first := make([]byte, 3)
	if _, err := io.ReadFull(r.Body, first); err != nil {
		t.Fatal(err)
	}
	if _, refusal := peek(r); refusal == nil {
		t.Error("a part of the body was taken for all of it")
	}
	if rest, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(rest, []byte(text[3:])) {
		t.Errorf("%d bytes are left, %v", len(rest), err)
	}
	for _, none := range []*http.Request{{}, {Body: http.NoBody}, {Body: &tracked{}, ContentLength: 0}} {
		if seen, refusal := peek(none); seen != nil || refusal != nil {
			t.Errorf("no body: %q, %v", seen, refusal)
		}
	}
}

// TestRoom: a body that is only announced takes no memory, and the bodies of all requests together hold no more
// than MaxInMemory, until they are read or their requests are over. Small bodies always have room.
func TestRoom(t *testing.T) {
	const size = 1 << 20
	text := strings.Repeat("x", size)
	request := func(ctx context.Context, size int) *http.Request {
		r := &http.Request{Body: &tracked{Reader: strings.NewReader(text[:size])}, ContentLength: int64(size)}
		return r.WithContext(ctx)
	}
	announced := &http.Request{Body: &tracked{Reader: iotest.ErrReader(io.ErrUnexpectedEOF)}, ContentLength: size}
	if _, got := peek(announced); reason(got) != io.ErrUnexpectedEOF.Error() || cap(announced.Body.(*Body).seen) > firstRead+1 {
		t.Errorf("%d bytes for a body that never comes, %v", cap(announced.Body.(*Body).seen), got)
	}
	ctx, over := context.WithCancel(t.Context())
	read, unread := request(ctx, size), request(ctx, size)
	for _, r := range []*http.Request{read, unread} {
		if _, refusal := peek(r); refusal != nil {
			t.Fatal(refusal)
		}
	}
	if n := inMemory.Load(); n < 2*size || n > 2*(size+1) {
		t.Errorf("%d bytes are inMemory by two bodies of %d", n, size)
	}
	if _, err := io.Copy(io.Discard, read.Body); err != nil || inMemory.Load() > size+1 {
		t.Errorf("%d bytes are inMemory after one is read, %v", inMemory.Load(), err)
	}
	others := MaxInMemory - inMemory.Load()
	inMemory.Add(others)
	late, small := request(t.Context(), size), request(t.Context(), 1000)
	if _, refusal := peek(late); refusal != busy {
		t.Errorf("without room: %v, want %v", refusal, busy)
	}
	if all, err := io.ReadAll(late.Body); err != nil || string(all) != text {
		t.Errorf("without room, the handler reads %d bytes, %v", len(all), err)
	}
	if _, refusal := peek(small); refusal != nil {
		t.Errorf("without room, a small body: %v", refusal)
	}
	inMemory.Add(-others)
	over()
	if _, refusal := peek(request(ctx, size)); refusal != nil {
		t.Errorf("after the client has left: %v", refusal)
	}
	patient.UntilEqual(t, "bytes inMemory after the requests", inMemory.Load, 0)
}

// TestOtherTextIsNotRead: a body that is no text in UTF-8 by its header is refused before it comes, however large it is.
func TestOtherTextIsNotRead(t *testing.T) {
	under := &tracked{Reader: strings.NewReader("x")}
	r := &http.Request{Body: under, ContentLength: 5 * maxBody, Header: http.Header{"Content-Type": {"application/json; charset=utf-16"}}}
	if _, refusal := ReadJSON(r); refusal == nil || refusal.Status != http.StatusUnsupportedMediaType || under.read > 0 {
		t.Errorf("%+v after %d bytes, want 415 and none", refusal, under.read)
	}
}

// TestBroken: a body is broken off by its client if it ends in an error for any reader, but not if it is closed before.
func TestBroken(t *testing.T) {
	broken, tooLong := errors.New("connection reset"), &http.MaxBytesError{Limit: 3}
	ends := func(err error) *http.Request {
		from := io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(err))
		return &http.Request{Body: &tracked{Reader: from}, ContentLength: -1}
	}
	read := func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	for name, c := range map[string]struct {
		end  error
		do   func(r *http.Request)
		want bool
	}{
		"whole":                                     {io.EOF, read, false},
		"broken off":                                {broken, read, true},
		"nobody reads it":                           {broken, func(*http.Request) {}, false},
		"a limiter looks":                           {broken, func(r *http.Request) { _, _ = peek(r) }, true},
		"a limiter looks, and a handler reads":      {io.EOF, func(r *http.Request) { _, _ = peek(r); read(r) }, false},
		"closed by a handler":                       {broken, func(r *http.Request) { r.Body.Close(); read(r) }, false},
		"closed by the server":                      {http.ErrBodyReadAfterClose, read, false},
		"too long for a handler":                    {io.EOF, func(r *http.Request) { read(r); Of(r).Returned(tooLong) }, true},
		"too long for a handler that reads nothing": {io.EOF, func(r *http.Request) { Of(r).Returned(tooLong) }, false},
		"another error of a handler":                {io.EOF, func(r *http.Request) { read(r); Of(r).Returned(broken) }, false},
	} {
		r := ends(c.end)
		b := Of(r)
		c.do(r)
		if b.Broken() != c.want || Of(r) != b {
			t.Errorf("%s: broken %v, want %v", name, b.Broken(), c.want)
		}
	}
	r := ends(broken)
	if _, _ = peek(r); Of(r).Broken() {
		t.Error("what a limiter sees before the handlers, of which none reads, is no end of theirs")
	}
	if read(r); !Of(r).Broken() {
		t.Error("a handler has read what a limiter has seen")
	}
	if b := Of(&http.Request{Body: http.NoBody}); b.Broken() {
		t.Error("no body is broken")
	}
}
