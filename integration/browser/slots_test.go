package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// testSlots: what an adaptive zone does: curves, a sentence, the keys that have the slots, and the shares of the classes.
func testSlots(t *testing.T, w *world) {
	release := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		upstream.CloseClientConnections()
		upstream.Close()
	})
	c := startCaddy(t, "", `
	rate_limit {
		zone slots {
			match path /slots
			key {header.Client}
			algorithm adaptive
			min 2
			max 2
			max_wait 1m
			priority {header.Client} gold
		}
	}
	handle /slots {
		reverse_proxy `+upstream.Listener.Addr().String()+`
	}
	respond ok`)
	p := w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.open(c.page("--no-open"))
	t.Cleanup(p.noProblems)
	p.untilText("[data-zone=slots]", "as many at once as the upstream can use")
	p.click("[data-zone=slots] .open")
	p.untilText("[data-zone=slots] .slots", "Nothing waits.")
	send := func(client string) {
		go func() {
			r, err := http.NewRequest(http.MethodGet, "http://"+c.site+"/slots", nil)
			if err == nil {
				r.Header.Set("Client", client)
				if response, err := http.DefaultClient.Do(r); err == nil {
					response.Body.Close()
				}
			}
		}()
	}
	send("gold")
	p.untilText("[data-zone=slots] .slots", "1 of 2 requests runs.")
	send("tin")
	p.untilText("[data-zone=slots] .slots", "2 of 2 requests run.")
	send("tin")
	p.untilText("[data-zone=slots] .slots", "1 waits: the upstream is the bottleneck since")
	for _, what := range []string{"limit", "running", "waiting", "mean"} {
		p.untilText("[data-zone=slots] .panel", what)
	}
	p.until("three charts", `document.querySelectorAll('[data-zone=slots] .plot canvas').length === 3`)
	for range 3 {
		release <- struct{}{}
	}
	p.untilText("[data-zone=slots] .slots", "0 of 2 requests run. Nothing waits.")
	p.untilText("[data-zone=slots] .slot-classes", "gold")
	p.until("the share of a class", `/%/.test(document.querySelector('[data-zone=slots] .slot-classes').innerText)`)
	p.untilText("[data-zone=slots] .slot-keys", "tin")
	p.accessible("an adaptive zone")
}
