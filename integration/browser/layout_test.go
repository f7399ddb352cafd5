package browser

import (
	"fmt"
	"testing"
)

// testTouch: at 360 pixels nothing scrolls sideways, and all targets are large enough for a finger.
func testTouch(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: theo")
	p.click(`.refused [aria-label="Why? theo in zone clients"]`)
	p.untilText("#why-body", "Zone clients is refusing this key")
	p.resize(360, 740, "light")
	p.until("nothing that is wider than the window", `document.documentElement.scrollWidth <= 360`)
	small := eval[string](p, `[...document.querySelectorAll('button, select, summary, input:not([type=checkbox]), nav a')].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 44).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join('\n')`)
	if small != "" {
		t.Errorf("targets below 44 pixels:\n%s", small)
	}
	p.click(`.refused [aria-label="More actions for theo in zone clients"]`)
	p.until("nothing wider with an open menu", `document.documentElement.scrollWidth <= 360`)
	p.press("Escape")
	p.menuFits(`.refused [aria-label="More actions for theo in zone clients"]`)
}

// menuFits: in a window of 600 pixels, where rows are lists, an open menu is within the window.
func (p *tab) menuFits(summary string) {
	p.t.Helper()
	p.resize(600, 900, "light")
	p.click(summary)
	p.until("a menu within the window", `(() => { const r = document.querySelector('details.menu[open] .choices')?.getBoundingClientRect(); return r && r.left >= 0 && r.right <= 600 })()`)
	p.press("Escape")
}

// many opens the page of a Caddy, and returns it with a function that has 500 more clients refused, and with their number.
func (w *world) many(t *testing.T) (p *tab, n *int, send func()) {
	t.Helper()
	c := startCaddy(t, "", "rate_limit {\n\t\tzone many {\n\t\t\tkey {header.Client}\n\t\t\tevents 0\n\t\t\twindow 1h\n\t\t}\n\t}\n\trespond ok")
	p = w.browser.show(t, c.page())
	p.untilText("#link", "live")
	n = new(int)
	return p, n, func() {
		for range 500 {
			c.get("/", fmt.Sprintf("Client: client-%d", *n))
			*n++
		}
	}
}

// testManyKeys: 10,000 clients that are refused do not make the page grow.
func testManyKeys(t *testing.T, w *world) {
	p, n, send := w.many(t)
	for *n < 2000 {
		send()
	}
	p.click("#refused-all")
	p.untilDoing("many rows", send, `document.querySelectorAll('.refused tbody tr').length > 20`)
	for *n < 10000 {
		send()
	}
	var size struct{ Elements, Rows, Known int }
	must(t, p.try(`import(new URL('state.js', document.baseURI)).then(m => ({Elements: document.querySelectorAll('*').length, Rows: document.querySelectorAll('.refused tbody tr').length, Known: m.state.zones[0].refusing.size}))`, &size))
	if size.Elements > 12000 || size.Rows > 101 || size.Known > 220 {
		t.Errorf("after %d clients the page has %+v", *n, size)
	}
	p.untilDoing("a count of them", send, `/\d+ clients? now/.test(document.getElementById('refused-note').innerText)`)

	p.noProblems()
}
