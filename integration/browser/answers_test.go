package browser

import (
	"strings"
	"testing"
	"time"
)

// TestAnswers: error routes give a browser that goes to a page a page, and a script JSON, so that it can wait as it says. A
// script of another origin reads a status of gRPC-Web although no field is exposed to it.
func TestAnswers(t *testing.T) {
	const site = `
	rate_limit {
		zone quota {
			match {
				path /page /call
				not method OPTIONS
			}
			events 0
			window 12s
		}
		zone soon {
			match path /soon
			rate 1/1s
		}
	}
	handle_errors 429 {
		@page header Accept *text/html*
		header @page Content-Type "text/html; charset=utf-8"
		respond @page "<!doctype html><h1>Too Many Requests</h1><p>Wait {http.rate_limit.retry_after} seconds."
		respond ` + "`" + `\{"zone":"{http.rate_limit.zone}","retry_after":{http.rate_limit.retry_after}\}` + "`" + `
	}
	header Access-Control-Allow-Origin *
	header Access-Control-Allow-Headers *
	respond ok`
	c, other := startCaddy(t, "", site), startCaddy(t, "", site)
	p := startChromium(t).newTab(t)
	p.open("http://" + c.site + "/page")
	p.untilText("h1", "Too Many Requests")
	if got := p.text("p"); got != "Wait 12 seconds." {
		t.Errorf("the page says %q", got)
	}
	p.takeProblems() // the browser logs the status
	type problem struct {
		Zone string
		Wait int `json:"retry_after"`
	}
	const json = `{ headers: { Accept: 'application/json' } }`
	if got := eval[problem](p, `fetch('/page', `+json+`).then(r => r.json())`); got != (problem{"quota", 12}) {
		t.Errorf("a script gets %+v", got)
	}
	waited := eval[[]float64](p, `(async () => {
		for (;;) { // on a busy machine a request may pass at once
			const refused = await fetch('/soon', `+json+`);
			if (refused.ok) continue;
			const begun = performance.now(), wait = (await refused.json()).retry_after;
			await new Promise(go => setTimeout(go, 1000 * wait));
			return [(await fetch('/soon', `+json+`)).status, performance.now() - begun];
		}
	})()`)
	if waited[0] != 200 || waited[1] < float64(time.Second/time.Millisecond)-1 {
		t.Errorf("a script that waits as it is told gets status %v after %v ms", waited[0], waited[1])
	}
	got := eval[string](p, `fetch('http://`+other.site+`/call', { method: 'POST', headers: { 'Content-Type': 'application/grpc-web-text' }, body: 'AAAAAAA=' })
		.then(async r => r.status + ' ' + r.headers.get('grpc-status') + '\n' + atob(await r.text()).slice(5))`)
	if !strings.HasPrefix(got, "200 null\ngrpc-status: 8\r\n") || !strings.Contains(got, "grpc-retry-pushback-ms: 12000\r\n") {
		t.Errorf("a script of another origin gets %q", got)
	}
	p.takeProblems()
}
