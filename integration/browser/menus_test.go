package browser

import (
	"fmt"
	"testing"
)

// testMenus: an open menu stays open, with its focus, and no click is lost, whatever the stream brings.
func testMenus(t *testing.T, w *world) {
	site := "rate_limit {\n\t\tzone first {\n\t\t\tmatch path /\n\t\t\tkey {header.Client}\n\t\t\trate 1/1h\n\t\t\toverrides\n\t\t}\n\t\tzone second {\n\t\t\tmatch path /second\n\t\t\tkey {header.Client}\n\t\t\trate 1/1h\n\t\t}\n\t}\n\trespond "
	c := startCaddy(t, "", site+"ok")
	p := w.browser.show(t, c.page())
	for i := range 3 {
		c.times(8, "/", fmt.Sprint("Client: rival-", i))
	}
	c.times(6, "/", "Client: mia")
	const row = `[...document.querySelectorAll('.refused tbody tr')].find(r => r.innerText.includes('mia'))`
	p.until("four rows", `document.querySelectorAll('.refused tbody tr').length === 4 && `+row)
	p.afterDialog()

	// Between the press and the release of a button, a row gets other actions, other zones and another place.
	p.mouse("mousePressed", button("Let through", "mia", "first"))
	must(t, p.try(`document.activeElement.blur()`, nil))
	c.times(9, "/second", "Client: mia", "User-Agent: another")
	p.until("another state of the row", row+`.innerText.includes('another')`)
	p.mouse("mouseReleased", "")
	p.until("the dialog", `document.getElementById('dialog').open`)
	p.press("Escape")
	p.until("the end of the dialog", `!document.getElementById('dialog').open`)
	p.mouse("mouseMoved", "")

	// The page forgets the client, as it does when very many others are refused. Then the config is loaded again.
	p.until("a menu for both zones", row+`.querySelector('summary').getAttribute('aria-label').endsWith('2 zones')`)
	p.click(`.refused [aria-label="More actions for mia in 2 zones"]`)
	must(t, p.try(`window.menu = document.activeElement.closest('details')`, nil))
	const stays = `menu.isConnected && menu.open && document.activeElement === menu.firstChild`
	must(t, p.try(`import(new URL('state.js', document.baseURI)).then(m => m.state.zones.forEach(z => z.refusing.clear()))`, nil))
	p.events(2)
	if !eval[bool](p, stays) {
		t.Error("the menu is closed after the page has forgotten its client")
	}
	c.reload("", site+"again")
	p.untilText("#news", "Connected again")
	p.events(2)
	if !eval[bool](p, stays) {
		t.Error("a reload has closed the menu")
	}
	p.takeProblems() // the browser logs that the stream ends
	p.press("Escape")
	p.until("a closed menu with the focus on it", `!menu.open && document.activeElement === menu.firstChild`)
}

// afterDialog: browsers tell a page late that a dialog was closed. A menu that is opened before stays open.
func (p *tab) afterDialog() {
	p.t.Helper()
	p.click(button("Let through", "mia", "first"))
	p.until("the dialog", `document.getElementById('dialog').open`)
	closed := eval[bool](p, `new Promise(told => {
		const menu = document.querySelector('.refused details')
		document.getElementById('dialog').addEventListener('close', () => setTimeout(() => told(!menu.open)), {once: true})
		document.getElementById('dialog-no').click()
		menu.firstChild.focus()
		menu.firstChild.click()
	})`)
	if closed {
		p.t.Error("the end of a dialog has closed a menu that was opened after it")
	}
	p.press("Escape")
}

// events waits for events of the stream, and for what they change.
func (p *tab) events(n int) {
	p.t.Helper()
	must(p.t, p.try(fmt.Sprintf(`import(new URL('stream.js', document.baseURI)).then(m => new Promise(done => {
		let left = %d
		m.listen(what => { if (what === 'second' && --left === 0) requestAnimationFrame(() => setTimeout(done)) })
	}))`, n), nil))
}

// mouse moves the mouse to the middle of an element, and presses or releases its button. Without an element it stays where it was,
// or moves away from all.
func (p *tab) mouse(what, selector string) {
	p.t.Helper()
	if selector != "" {
		p.until(selector, fmt.Sprintf(`(() => {
			const e = document.querySelector(%s)
			if (!e) return false
			e.scrollIntoView({block: 'center', behavior: 'instant'})
			const r = e.getBoundingClientRect()
			window.mouse = [r.x + r.width / 2, r.y + r.height / 2]
			return e.contains(document.elementFromPoint(...mouse))
		})()`, quoted(selector)))
	}
	at := []float64{1, 1}
	if what != "mouseMoved" {
		at = eval[[]float64](p, `mouse`)
	}
	p.do("Input.dispatchMouseEvent", map[string]any{"type": what, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
}

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
