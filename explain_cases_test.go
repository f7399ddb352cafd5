package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// explainSites are sites with more in them than rate_limit.
const explainSites = `{
	servers {
		trusted_proxies static 10.0.0.0/8
		client_ip_headers X-Real-Ip X-Forwarded-For
	}
}
http://auth.test {
	route {
		basic_auth {
			alice $2a$08$cy9egAr4luR06gP4k71NWeufAowZa4epgNZgNKwDAShhfOrQwRXUm
		}
		rate_limit {
			zone users {
				key {http.auth.user.id}
				rate 5/500h
			}
		}
		respond ok
	}
}
http://forward.test {
	route {
		forward_auth 127.0.0.1:9 {
			uri /check
			copy_headers Remote-User
		}
		rate_limit {
			zone forwarded {
				key {header.Remote-User}
				missing_key reject 401
				rate 5/500h
			}
		}
		respond ok
	}
}
http://routes.test {
	handle /huge {
		rate_limit {
			zone huge {
				rate 5/500h
				cost 6
			}
		}
	}
	handle /proxied {
		rate_limit {
			zone clients {
				key {client_ip}
				rate 5/500h
			}
		}
	}
}
http://down.test {
	rate_limit /allow {
		zone allow {
			rate 5/1h
		}
		STORE
	}
	rate_limit /local {
		zone local {
			rate 6/1h
			on_store_error local
		}
		instances 3
		STORE
	}
	rate_limit /deny {
		zone deny {
			rate 5/1h
			on_store_error deny
		}
		STORE
	}
	respond ok
}
`

// TestExplain: what explain says where it takes more than a rate_limit handler: authentication, trusted proxies, and a store that does not answer. Package walk tests what happens to requests before, and TestExplainAgrees the rest.
func TestExplain(t *testing.T) {
	address := caddytest.FreeAddress(t)
	down := fmt.Sprintf("store redis {\naddress 127.0.0.1:%d\ntimeout 100ms\n}", redistest.FreePort(t))
	caddytest.RunConfig(t, address, strings.ReplaceAll(explainSites, "STORE", down))
	_, port, _ := net.SplitHostPort(address)
	counted := func() string {
		return caddytest.Admin(t, "GET", "zones", "") + caddytest.Admin(t, "GET", "top", "")
	}
	ages := regexp.MustCompile(`"[a-z]+_after": .*`)
	before := ages.ReplaceAllString(counted(), "")
	for _, c := range []struct {
		name    string
		request adminapi.Request
		want    []string // in the answer, as JSON without spaces
	}{
		{"password", adminapi.Request{URL: "http://alice:hiccup@auth.test/"}, []string{`"key":"alice"`, `"url":"http://alice:xxxxx@auth.test`, `"passes":true`}},
		{"wrong password", adminapi.Request{URL: "http://alice:guess@auth.test/"}, []string{`"outcome":"error"`, `"status":401`, `"passes":false`}},
		{"forward_auth", adminapi.Request{URL: "http://forward.test/", Header: []string{"Remote-User: forged"}}, []string{
			`"effect":"assumed","note":"is not asked; assumed that it answers 200`, `"outcome":"rejected"`, `"status":401`,
		}},
		{"forward_auth with a user", adminapi.Request{URL: "http://forward.test/", Assume: map[string]string{"http.reverse_proxy.header.Remote-User": "bob"}}, []string{
			`"key":"bob"`, `"outcome":"allowed","passes":true`,
		}},
		{"too dear", adminapi.Request{URL: "http://routes.test/huge"}, []string{`"outcome":"limited","passes":false,"zone":"huge","status":429,"never":true`, `"cost":6`}},
		{"trusted proxy", adminapi.Request{URL: "http://routes.test/proxied", From: "10.1.2.3:4", Header: []string{"X-Real-Ip: 203.0.113.9"}}, []string{
			`"from":"10.1.2.3:4","client_ip":"203.0.113.9"`, `"key":"203.0.113.9"`,
		}},
		{"IPv6", adminapi.Request{URL: "http://routes.test/proxied", From: "[2001:db8::1]:9"}, []string{`"key":"2001:db8::/64"`, `"from":"[2001:db8::1]:9"`}},
		{"store down, allow", adminapi.Request{URL: "http://down.test/allow"}, []string{`"outcome":"failed_open","passes":true`, `does not answer (`, `on_store_error allow"`}},
		{"store down, local", adminapi.Request{URL: "http://down.test/local"}, []string{`"outcome":"local","passes":true`, `"limit":"sliding_window_log 2/1h"`}},
		{"store down, deny", adminapi.Request{URL: "http://down.test/deny"}, []string{`"outcome":"failed_closed","passes":false,"status":503`, `on_store_error deny"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.request.URL)
			if err != nil {
				t.Fatal(err)
			}
			c.request.Header = append(c.request.Header, "Host: "+u.Host)
			c.request.URL = strings.Replace(c.request.URL, ".test/", ".test:"+port+"/", 1)
			text, err := json.Marshal(explain(t, c.request))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %s in %s", want, text)
				}
			}
		})
	}
	explainHostile(t, port)
	if after := ages.ReplaceAllString(counted(), ""); after != before {
		t.Errorf("to explain has changed what was counted:\n%s\nbefore:\n%s", after, before)
	}
}

// explainHostile checks that requests which cannot be are errors that say what is wrong.
func explainHostile(t *testing.T, port string) {
	at := "http://routes.test:" + port + "/proxied"
	for _, c := range []struct {
		body   any
		status int
		want   string
	}{
		{"{", 400, "the body must be a JSON object"},
		{`{"url": "` + at + `", "fly": true}`, 400, "fly"},
		{strings.Repeat(" ", 2<<20), 413, "the body has more than 1048576 bytes"},
		{adminapi.Request{}, 400, `url "": write a whole URL`},
		{adminapi.Request{URL: "/login"}, 400, "write a whole URL"},
		{adminapi.Request{URL: "http://routes.test:" + port + "/%zz"}, 400, "invalid URL escape"},
		{adminapi.Request{URL: "http://routes.test:1/"}, 400, "no server listens on port 1; the servers are srv0 ("},
		{adminapi.Request{URL: "https://routes.test:" + port + "/"}, 400, "server srv0 has no TLS there"},
		{adminapi.Request{URL: at, Server: "other"}, 400, `no server "other"; the servers are srv0`},
		{adminapi.Request{URL: at, Method: "GE T"}, 400, "has a character that no method can have"},
		{adminapi.Request{URL: at, From: "example.com"}, 400, `from "example.com": write an IP address`},
		{adminapi.Request{URL: at, Header: []string{"X-Foo"}}, 400, "write it as 'Name: value'"},
		{adminapi.Request{URL: at, Header: []string{"X Y: x"}}, 400, "is not the name of a header"},
		{adminapi.Request{URL: at, Header: []string{"X-Y: a\r\nX-Z: b"}}, 400, "has a control character"},
		{adminapi.Request{URL: at, Header: []string{"X-Long: " + strings.Repeat("a", 100_000)}}, 200, `"status": 431`},
	} {
		body, isText := c.body.(string)
		if !isText {
			text, err := json.Marshal(c.body)
			if err != nil {
				t.Fatal(err)
			}
			body = string(text)
		}
		if status, got := caddytest.AdminStatus(t, http.MethodPost, "explain", body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%.200s: %d %.500s, want %d with %q", body, status, got, c.status, c.want)
		}
	}
}
