package browser

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// testReload: the page stands a reload and a restart of Caddy, an empty config, and 200 zones.
func testReload(t *testing.T, w *world) {
	c := startCaddy(t, "", "respond ok")
	p := w.browser.show(t, c.page())
	p.untilText("#zones-body", "No zones: this Caddy limits no rates.")
	p.untilText("#level", "No limits")
	p.untilText("#refused-body", "There are no zones, so nobody is refused.")
	p.untilText("#stores-body", "No store")
	zone := func(name string) string {
		return "\t\tzone " + name + " {\n\t\t\tkey {header.Client}\n\t\t\tevents 1\n\t\t\twindow 1h\n\t\t}\n"
	}
	c.reload("", "rate_limit {\n"+zone("first")+"}\nrespond ok")
	p.untilText("#zones-body", "first")
	// If the page was away for longer than some seconds, it says since when instead.
	n := 0
	patient.Until(t, "a reload after which the page was soon there again", func() bool {
		p.untilText("#news", "Connected again")
		if strings.Contains(p.text("#news"), "the config was reloaded") {
			return true
		}
		must(t, p.try(`document.getElementById('news').textContent = ''`, nil))
		n++ // an unchanged config would not be loaded
		c.reload("", "rate_limit {\n"+zone("first")+"}\nrespond ok"+strconv.Itoa(n))
		return false
	})
	p.untilText("#refused-body", "Nobody was refused")
	p.untilText("#decisions-body", "No requests yet")
	p.untilText("#rules-body", "No zone allows them")
	p.untilText("#sentence", "1 zone.")
	p.untilText("#stores-body", "in memory")
	c.times(2, "/", "Client: rob")
	p.untilText(".refused", "rob")

	many := ""
	for i := range 200 {
		many += zone(fmt.Sprintf("zone-%03d", i))
	}
	c.reload("", "rate_limit {\n"+many+"}\nrespond ok")
	p.untilText("#sentence", "200 zones.")
	p.until("bars that are empty", `document.querySelector('[data-zone=zone-150] .fill')?.style.width === '0%'`)
	p.until("all zones", `[...document.querySelectorAll('[data-zone]')].filter(e => !e.hidden).length === 200`)
	p.write("#zones-text", "zone-11")
	p.until("ten zones", `[...document.querySelectorAll('[data-zone]')].filter(e => !e.hidden).length === 10`)
	c.times(2, "/", "Client: sue")
	p.untilText(".refused", "sue")
	p.untilText("[data-zone=zone-110]", "1")
	p.write("#zones-text", "")
	p.untilText("#zones-body", "zone-199")
	p.takeProblems() // the browser logs that the stream ends

	must(t, c.process.Kill())
	p.untilText("#sentence", "Caddy has not answered since")
	p.untilText("#level", "No answer")
	c.start()
	p.untilText("#link", "live")
	p.untilText("#news", "Caddy was restarted")
	for _, problem := range p.takeProblems() {
		if !strings.Contains(problem, "Failed to load resource") { // which the browser logs by itself
			t.Errorf("the console shows an error: %s", problem)
		}
	}
}

// testOutage: without Redis the page says so, and what this means; and that it is back.
func testOutage(t *testing.T, w *world) {
	redis := redistest.Start(t)
	c := startCaddy(t, store(redis), `
	rate_limit {
		zone clients {
			key {header.Client}
			rate 1/1h
			on_store_error deny
			overrides
		}
		zone share {
			match path /share
			key {header.Client}
			rate 10/1h
			on_store_error local
			overrides
		}
		instances 2
	}
	respond ok`)
	p := w.browser.show(t, c.page())
	p.untilText("#sentence", "answers")
	redis.Kill()
	request := func() { c.times(2, "/", "Client: una") }
	p.untilDoing("trouble", request, `document.getElementById('level').innerText === 'Trouble'`)
	p.untilText("#sentence", "does not answer.")
	p.untilText("#outage", "does not answer, since ")
	for _, want := range []string{"Zone clients: all requests are refused.", "Zone share: this instance counts alone, with 1/2 of the limit.", "Overrides and bans of single keys do not apply until it answers.", "asks it again twice a second"} {
		p.untilText("#outage", want)
	}
	p.until("a title and an icon that say so", `document.title === 'No answer – Rate limits' && decodeURIComponent(document.getElementById('icon').href).includes('black')`)
	p.click("#rules-load")
	p.untilText("#rules-body", "Unknown: the store keeps bans and overrides.")
	p.untilText("#rules-body", "Zones clients, share:")
	p.untilText("#stores-body", "open")
	p.write("#why-parts input", "una")
	p.click("#why-form button")
	p.untilText("#why-body", "does not answer")
	p.noProblemsBut("503")
	redis.Restart()
	p.untilDoing("the end of the trouble", request, `document.getElementById('level').innerText !== 'Trouble' && document.getElementById('outage').hidden`)
}
