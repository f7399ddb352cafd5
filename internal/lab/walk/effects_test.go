package walk_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// TestNamedRoutesWithoutEnd: named routes that invoke each other end a walk with an error. Caddy would crash.
func TestNamedRoutesWithoutEnd(t *testing.T) {
	server := load(t, adapt(t, `&(ping) {
			invoke pong
		}
		&(pong) {
			invoke ping
		}
		http://a.test {
			invoke ping
		}`), "")
	for _, detailed := range []bool{true, false} {
		w := walked(new(trace), server, get("GET", "http://a.test/")(), detailed)
		if w.err == nil || !strings.Contains(w.err.Error(), "without end") {
			t.Errorf("%v", w.err)
		}
	}
}

// panics is a visitor whose decisions panic.
type panics struct{ trace }

func (*panics) Serve(caddyhttp.MiddlewareHandler, http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	panic("a mistake")
}

// TestPanicIsAnError: a panic ends the walk and not the process.
func TestPanicIsAnError(t *testing.T) {
	server := load(t, adapt(t, "http://a.test {\nmark here\n}"), "")
	w := walked(new(panics), server, get("GET", "http://a.test/")(), true)
	if w.err == nil || !strings.Contains(w.err.Error(), "panic: a mistake") || !strings.Contains(w.err.Error(), "effects_test.go") {
		t.Errorf("%v", w.err)
	}
}

// provider is authentication that a walk does not know.
type provider struct{}

func init() { caddy.RegisterModule(new(provider)) }

func (*provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.authentication.providers.unknown", New: func() caddy.Module { return new(provider) }}
}

func (*provider) Authenticate(http.ResponseWriter, *http.Request) (caddyauth.User, bool, error) {
	return caddyauth.User{}, false, nil
}

// TestUnknownAuthentication: authentication that may ask a server is not run, and assumed to accept the request.
func TestUnknownAuthentication(t *testing.T) {
	server := load(t, []byte(`{"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},
		"routes":[{"handle":[{"handler":"authentication","providers":{"unknown":{}}},{"handler":"mark","text":"behind"}]}]}}}}}`), "")
	told := new(trace)
	w := walked(told, server, get("GET", "http://a.test/")(), true)
	if !told.assumed || len(w.marks) != 1 || !strings.Contains(told.lines[1], "is not run (unknown); assumed that it accepts the request") {
		t.Errorf("%q, %q, %v", w.marks, told.lines, w.err)
	}
	if s := served(server, get("GET", "http://a.test/")()); s.status != http.StatusUnauthorized {
		t.Errorf("the server answers %d, so this test says nothing", s.status)
	}
}
