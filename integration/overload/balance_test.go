package overload_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestTwoUpstreams: reverse_proxy spreads over a quick and a slow upstream, behind one zone. The slow one holds only the
// slots of its own requests: the others go on with the quick one. The limit is fixed, because it would else follow how
// quick the machine is.
func TestTwoUpstreams(t *testing.T) {
	p, slow := newProxy(t), startUpstream(t)
	p.to = p.up.Listener.Addr().String() + " " + slow.Listener.Addr().String() + " {\n lb_policy least_conn\n}"
	p.load("min 3\nmax 3\nmax_wait 1m", "")
	var quick, last <-chan result
	for range 2 { // each upstream gets one of two requests
		sent := p.send(t.Context(), "held", "/")
		select {
		case <-p.up.arrived:
			quick = sent
		case <-slow.arrived:
			last = sent
		case got := <-sent:
			t.Fatalf("a request reached no upstream: %+v", got)
		}
	}
	p.up.of("held") <- http.StatusOK
	if got := <-quick; got.status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	for range 20 {
		p.up.of("quick") <- http.StatusOK
		if got := <-p.send(t.Context(), "quick", "/"); got.status != http.StatusOK {
			t.Fatalf("%+v", got)
		}
		p.arrives("quick")
	}
	if s := state(t); s.Running != 1 || s.Useful != 21 {
		t.Errorf("%+v, want the slow one's request alone to run", s)
	}
	slow.of("held") <- http.StatusOK
	if got := <-last; got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	patient.UntilEqual(t, "requests that run in the end", func() int { return state(t).Running }, 0)
}

// TestRetriesInOneSlot: when an upstream is dead, reverse_proxy tries the next one within the same slot. So a zone with one
// slot is enough, and the request counts once, as useful.
func TestRetriesInOneSlot(t *testing.T) {
	p := newProxy(t)
	p.to = caddytest.FreeAddress(t) + " " + p.up.Listener.Addr().String() + " {\n lb_policy first\n lb_retries 2\n lb_try_interval 1ms\n fail_duration 1h\n}"
	p.load("max 1\nmax_wait 1m", "")
	first := p.send(t.Context(), "a", "/")
	p.arrives("a")
	second := p.send(t.Context(), "b", "/")
	p.waiting(1)
	if s := state(t); s.Running != 1 {
		t.Errorf("%+v while a request runs that was tried twice", s)
	}
	p.up.of("a") <- http.StatusOK
	p.up.of("b") <- http.StatusOK
	for _, r := range []<-chan result{first, second} {
		if got := <-r; got.status != http.StatusOK {
			t.Errorf("%+v", got)
		}
	}
	p.arrives("b")
	if s := state(t); s.Running != 0 || s.Useful != 2 || s.Failed != 0 {
		t.Errorf("%+v, want two useful answers", s)
	}
}
