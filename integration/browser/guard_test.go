package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// testAccessible: axe-core finds nothing serious, in light and dark, narrow and wide, and in the dialog.
func testAccessible(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: abe")
	p.untilText(".refused", "abe")
	p.click("[data-zone=clients] .open")
	p.write("#why-parts input", "abe")
	p.click("#why-form button")
	p.untilText("#why-body", "Zone clients is refusing this key")
	for _, scheme := range []string{"light", "dark"} {
		p.resize(1280, 900, scheme)
		p.accessible(scheme)
	}
	p.resize(360, 740, "light")
	p.accessible("narrow")
	p.click(button("Raise", "abe", "clients"))
	p.until("the dialog", `document.getElementById('dialog').open`)
	p.accessible("dialog")
	p.press("Escape")
}

// testClosed: when the page is closed, nothing is done for it any more.
func testClosed(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone clients {\n\t\t\tevents 1\n\t\t\twindow 1h\n\t\t}\n\t}\n\trespond ok")
	working := func() bool {
		response, err := http.Get("http://" + c.admin + "/debug/pprof/goroutine?debug=1")
		must(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		must(t, err)
		return strings.Contains(string(text), "admin.streamPage")
	}
	p := w.browser.newTab(t)
	p.open(c.page())
	p.untilText("#link", "live")
	if !working() {
		t.Error("the page is open, but there is no stream")
	}
	p.open("about:blank")
	patient.Until(t, "the end of the stream", func() bool { return !working() })
}

// accessible fails the test if axe-core finds something serious in the page, such as a contrast below WCAG AA, or if
// something has no name.
func (p *tab) accessible(name string) {
	p.t.Helper()
	p.named(name)
	axe, err := os.ReadFile("testdata/axe-core/axe.min.js")
	must(p.t, err)
	must(p.t, p.try(string(axe)+"\n;0", nil))
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	must(p.t, p.try(`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical'))`, &found))
	for _, v := range found {
		p.t.Errorf("%s: %s, %s: %s: %.300s %.300s", name, v.Impact, v.ID, v.Help, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
	}
}

// testGateway: the address of the command is needed to use it, and only the admin API of the limiter is
// behind it. Without the command Caddy refuses browsers.
func testGateway(t *testing.T, w *world) {
	p := w.browser.newTab(t)
	p.open("http://" + w.one.admin + "/rate_limit/page/")
	p.untilText("body", "client is not allowed to access from origin ''")
	base, path, _ := strings.Cut(strings.TrimPrefix(w.address, "http://"), "/")
	secret, _, _ := strings.Cut(path, "/")
	for _, c := range []struct {
		path, origin string
		status       int
	}{
		{"/" + path, "", 200},
		{"/" + secret + "/rate_limit/page", "", 404},
		{"/" + secret + "/rate_limit/zones", "", 200},
		{"/" + secret + "/rate_limit/zones", "http://" + base, 200},
		{"/" + secret + "/rate_limit/zones", "http://example.com", 403},
		{"/" + secret + "/config/", "", 404},
		{"/" + secret + "/rate_limit/../config/", "", 404},
		{"/rate_limit/page/", "", 403},
		{"/" + strings.Repeat("a", len(secret)) + "/rate_limit/page/", "", 403},
		{"/", "", 403},
	} {
		request, err := http.NewRequest("GET", "http://"+base, nil)
		must(t, err)
		request.URL.Opaque = "//" + base + c.path
		if c.origin != "" {
			request.Header.Set("Origin", c.origin)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		must(t, err)
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode == 308 && response.Header.Get("Location") != "page/" {
			t.Errorf("the redirect loses the secret: %s", response.Header.Get("Location"))
		}
		if redirected := response.StatusCode/100 == 3 && response.Header.Get("Location") == "/config/"; response.StatusCode != c.status && !redirected { // where there is no secret
			t.Errorf("%s from %q: status %d, want %d: %.200s", c.path, c.origin, response.StatusCode, c.status, text)
		}
	}
	binary, err := buildCaddy()
	must(t, err)
	for arguments, want := range map[string]string{"--listen=0.0.0.0:0": "that only this machine can reach", "--listen=nonsense": "such as localhost:2080"} {
		if output, err := exec.Command(binary, "rate-limit", "page", arguments, "--address", w.one.admin).CombinedOutput(); err == nil || !strings.Contains(string(output), want) {
			t.Errorf("%s: %v\n%s", arguments, err, output)
		}
	}
	p.takeProblems() // the browser logs the status 403
}

// testOtherOrigins: a page of another origin can neither reset nor ban nor set a key, whichever way it
// sends its requests.
func testOtherOrigins(t *testing.T, w *world) {
	w.one.times(6, "/", "Client: otto")
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, "<!doctype html><title>other</title><iframe name=frame></iframe>")
	}))
	defer other.Close()
	gateway := strings.TrimSuffix(w.address, "page/")
	p := w.browser.newTab(t)
	p.open(other.URL)
	p.until("the other page", `document.title === 'other'`)
	for _, base := range []string{"http://" + w.one.admin + "/rate_limit/", gateway, "http://localhost:" + strings.Split(w.one.admin, ":")[1] + "/rate_limit/"} {
		tried := eval[int](p, `(async base => {
			const key = base + 'zones/clients/key', query = '?key=otto'
			let tried = 0
			for (const mode of ['cors', 'no-cors', 'same-origin']) {
				for (const [method, path, body] of [['DELETE', key + query], ['PUT', key + '/ban' + query, '{}'], ['PUT', key + '/override' + query, '{"limit": "exempt"}'], ['POST', key + query, ''], ['POST', base + 'explain', '{}']]) {
					for (const type of ['application/json', 'text/plain']) {
						tried++
						try { await fetch(path, {method, body, mode, headers: {'Content-Type': type}, referrerPolicy: 'no-referrer'}) } catch {}
					}
				}
			}
			for (const path of [key + query, key + '/ban' + query, key + '/override' + query]) {
				const form = document.createElement('form')
				form.action = path; form.method = 'POST'; form.enctype = 'text/plain'; form.target = 'frame'
				document.body.append(form)
				form.submit()
				tried++
				navigator.sendBeacon(path, '{}')
			}
			let read = 'nothing'
			try { read = await (await fetch(base + 'zones')).text() } catch {}
			if (read !== 'nothing' && !read.includes('not allowed') && !read.includes('another site')) throw new Error('it can read ' + read)
			return tried
		})(`+quoted(base)+`)`)
		if tried < 30 {
			t.Errorf("only %d requests were tried", tried)
		}
	}
	if s := w.two.state("clients", "otto"); s.Used != 5 || s.Override != nil || s.Ban != nil {
		t.Errorf("another page has changed the key: %+v", s)
	}
	p.takeProblems()
}

// testBehindAuthentication: the page works behind a site of Caddy as docs/page.md has it, for people
// with the password, and other sites cannot use it.
func testBehindAuthentication(t *testing.T, w *world) {
	site := `
	route /rate_limit/* {
		basic_auth {
			alice $2a$04$MhSbH1Jjm8rp5Ti2IIPMLeECXCg/XqwZleMXA4NAfJoYpnP/tz.FS
		}
		@open {
			method GET
			path /rate_limit/page/
		}
		request_header @open -Sec-Fetch-Mode
		reverse_proxy {args[0]}
	}
	rate_limit {
		zone clients {
			match path /
			key {header.Client}
			rate 1/1h
			overrides
		}
	}
	respond ok`
	c := startCaddy(t, "", "respond ok")
	c.reloadWith(strings.Replace(site, "{args[0]}", c.admin, 1), "origins "+c.admin+" "+c.site)
	patient.UntilEqual(t, "the status without a password", func() int {
		response, err := http.Get("http://" + c.site + "/rate_limit/zones")
		if err != nil {
			return 0 // from the server that the reload has replaced
		}
		defer response.Body.Close()
		return response.StatusCode
	}, http.StatusUnauthorized)
	p := w.browser.newTab(t)
	p.do("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{"Authorization": "Basic YWxpY2U6c2VjcmV0"}}, nil)
	p.open("http://" + c.site + "/rate_limit/page/")
	p.untilText("#link", "live")
	c.times(3, "/", "Client: amy")
	p.click(button("Let through", "amy", "clients"))
	p.confirm()
	p.untilText("#news", "Let through amy")
	if got := c.times(2, "/", "Client: amy"); got != 1 {
		t.Errorf("after the reset %d requests are admitted, want 1", got)
	}
	p.noProblems()
	request, err := http.NewRequest("PUT", "http://"+c.site+"/rate_limit/zones/clients/key/ban?key=amy", nil)
	must(t, err)
	request.Header.Set("Authorization", "Basic YWxpY2U6c2VjcmV0")
	request.Header.Set("Origin", "http://example.com")
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	var answer struct{ Error string }
	_ = json.NewDecoder(response.Body).Decode(&answer)
	if response.StatusCode != http.StatusForbidden || !strings.Contains(answer.Error, "origin 'http://example.com'") {
		t.Errorf("from another site: %s %s", response.Status, answer.Error)
	}
}
