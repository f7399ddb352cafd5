package walk_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// TestWalkHasNoEffects: a walk asks no upstream, reads no body and logs nothing, where the server does all three.
func TestWalkHasNoEffects(t *testing.T) {
	var asked atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer upstream.Close()
	to := strings.TrimPrefix(upstream.URL, "http://")
	logs := filepath.Join(t.TempDir(), "log")
	server := load(t, adapt(t, fmt.Sprintf(`http://a.test {
		log
		route {
			log_append user {header.X-User}
			rewrite * /new
			map {path} {where} {
				/new here
			}
			forward_auth %s {
				uri /check
			}
			mark {where}
			reverse_proxy %s
		}
	}`, to, to)), logs)
	logged := func() int { // by what serves requests: other parts of Caddy log in the background
		text, err := os.ReadFile(logs)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), `"logger":"http.`)
	}
	before, body := logged(), strings.NewReader("a body")
	request := httptest.NewRequest(http.MethodPost, "http://a.test/old", body)
	if w := walked(new(trace), server, request); fmt.Sprint(w.marks, w.err) != "[here POST /new] <nil>" {
		t.Fatalf("%q, %v", w.marks, w.err)
	}
	if asked.Load() > 0 || logged() > before || body.Len() != len("a body") {
		t.Errorf("%d requests to the upstream, %d lines of logs, %d bytes of the body are left", asked.Load(), logged()-before, body.Len())
	}
	served(server, get("POST", "http://a.test/old")())
	if asked.Load() != 2 || logged() == before {
		t.Errorf("the server made %d requests and logged %d lines, so this test says nothing", asked.Load(), logged()-before)
	}
}

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
	w := walked(new(trace), server, get("GET", "http://a.test/")())
	if w.err == nil || !strings.Contains(w.err.Error(), "without end") {
		t.Errorf("%v", w.err)
	}
	if w = walked(quick{new(trace)}, server, get("GET", "http://a.test/")()); w.err == nil {
		t.Error("no error without routes")
	}
}

// panics is a visitor whose decisions panic.
type panics struct{ trace }

func (*panics) Decide(caddyhttp.MiddlewareHandler, *http.Request) (bool, error) { panic("a mistake") }

// TestPanicIsAnError: a panic ends the walk and not the process.
func TestPanicIsAnError(t *testing.T) {
	server := load(t, adapt(t, "http://a.test {\nmark here\n}"), "")
	w := walked(new(panics), server, get("GET", "http://a.test/")())
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
	w := walked(told, server, get("GET", "http://a.test/")())
	if !told.assumed || len(w.marks) != 1 || !strings.Contains(told.lines[1], "is not run (unknown); assumed that it accepts the request") {
		t.Errorf("%q, %q, %v", w.marks, told.lines, w.err)
	}
	if s := served(server, get("GET", "http://a.test/")()); s.status != http.StatusUnauthorized {
		t.Errorf("the server answers %d, so this test says nothing", s.status)
	}
}
