package browser

import (
	"fmt"
	"slices"
	"testing"
)

// testTouch: at 360 pixels nothing scrolls sideways, and all targets are large enough for a finger.
func testTouch(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: theo")
	p.click(`.refused [aria-label="Why? theo in zone clients"]`)
	p.untilText("#why-body", "Zone clients refuses it")
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

// watchesMoves notes what moves in the page, and by how much.
const watchesMoves = `window.moved = []
	new PerformanceObserver(list => { for (const e of list.getEntries()) moved.push([e.value, e.sources.map(s => (s.node?.id || s.node?.className || s.node?.nodeName) + ' from ' + Math.round(s.previousRect.y) + ' to ' + Math.round(s.currentRect.y)).join()]) }).observe({type: 'layout-shift', buffered: true})`

// moves fails the test if the page has moved by more than this, since it was loaded or the list was emptied.
func (p *tab) moves(most float64) {
	p.t.Helper()
	moved, sum := eval[[][2]any](p, `moved`), 0.0
	for _, m := range moved {
		sum += m[0].(float64)
	}
	if sum > most {
		p.t.Errorf("the page moves by %.3f: %v", sum, moved)
	}
}

// testSteadyFlood: while the same clients are refused again and again, their counts and waits change, and nothing moves.
func testSteadyFlood(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone flood {\n\t\t\tkey {header.Client}\n\t\t\trate 2/10s\n\t\t\toverrides\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": watchesMoves}, nil)
	p.open(c.page())
	clients := 4
	flood := func() {
		for i := range clients { // each has its place, because it is refused more often than the next
			c.times(10*(clients-i), "/", fmt.Sprint("Client: client-", i))
		}
	}
	events := `import(new URL('state.js', document.baseURI)).then(m => m.state.zones[0]?.history.times.length > %d && document.querySelectorAll('.refused tbody tr').length === 4 && [...document.querySelectorAll('.refused .request')].every(e => e.innerText !== '–'))`
	p.untilDoing("all rows", flood, fmt.Sprintf(events, 4))
	must(t, p.try(`moved.length = 0`, nil))
	n := eval[int](p, `import(new URL('state.js', document.baseURI)).then(m => m.state.zones[0].history.times.length)`)
	p.untilDoing("eight events", flood, fmt.Sprintf(events, n+8))
	p.moves(0.002)
	p.noProblems()
}

// many opens the page of a Caddy, and returns it with a function that has 500 more clients refused, and with their number.
func (w *world) many(t *testing.T) (p *tab, n *int, send func()) {
	t.Helper()
	c := startCaddy(t, "", "rate_limit {\n\t\tzone many {\n\t\t\tkey {header.Client}\n\t\t\tevents 0\n\t\t\twindow 1h\n\t\t}\n\t}\n\trespond ok")
	p = w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.open(c.page())
	p.untilText("#link", "live")
	n = new(int)
	return p, n, func() {
		for range 500 {
			c.get("/", fmt.Sprintf("Client: client-%d", *n))
			*n++
		}
	}
}

// testManyKeys: 10,000 clients that are refused do not make the page grow, and none keeps it busy for long.
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

	p.untilDoing("all rows, because until then each frame makes some", send, `document.querySelectorAll('.refused tbody tr').length >= 100`)

	// What an event changes in the page is bounded: it makes few rows, changes those on the screen and few others, and moves no row
	// that keeps its place among the others. The browser draws what is on the screen, or near.
	must(t, p.try(`import(new URL('stream.js', document.baseURI)).then(m => {
		const seen = new MutationObserver(() => {})
		seen.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true})
		window.work = {Changes: [], Touched: [], Made: [], Drawn: []}
		const rows = () => [...document.querySelectorAll('.refused tbody tr')]
		let before = new Set(rows())
		m.listen(what => {
			if (what !== 'second') return
			const all = seen.takeRecords()
			work.Changes.push(all.length)
			work.Touched.push(new Set(all.map(r => (r.target.closest ? r.target : r.target.parentElement)?.closest('.refused tr')).filter(Boolean)).size)
			const now = rows()
			work.Made.push(now.filter(r => !before.has(r)).length)
			work.Drawn.push(now.filter(r => r.lastChild.checkVisibility({contentVisibilityAuto: true})).length)
			before = new Set(now)
		})
	})`, nil))
	p.untilDoing("ten events", send, `work.Changes.length >= 10`)
	var work struct{ Changes, Touched, Made, Drawn []int }
	must(t, p.try(`work`, &work))
	rows := eval[int](p, `document.querySelectorAll('.refused tbody tr').length`)
	if most := slices.Max(work.Changes); rows < 90 || most > 8*rows+400 {
		t.Errorf("an event changes %d nodes for %d rows", most, rows)
	}
	if most := slices.Max(work.Touched); most > 70 {
		t.Errorf("an event changes %d of %d rows", most, rows)
	}
	if most := slices.Max(work.Made); most > 12 {
		t.Errorf("an event makes %d rows, want at most 12", most)
	}
	if most := slices.Max(work.Drawn); most > 80 {
		t.Errorf("the browser draws %d of %d rows, although most are not on the screen", most, rows)
	}
	p.movesFew()
	p.noProblems()
}

// movesFew: of the children of an element whose order changes, all stay in place but as few as possible. A slow and obviously right
// model says how few.
func (p *tab) movesFew() {
	p.t.Helper()
	var wrong []string
	must(p.t, p.try(`import(new URL('dom.js', document.baseURI)).then(({ place, el }) => {
		let seed = 1
		const random = n => (seed = seed * 48271 % 2147483647) % n, wrong = []
		for (let round = 0; round < 300; round++) {
			const at = el('div', {}, Array.from({length: random(12)}, (_, i) => el('p', {}, String(i)))), before = [...at.children]
			const list = before.filter(() => random(5)).concat(Array.from({length: random(3)}, () => el('p', {}, 'new')))
			if (round % 2) list.push(...list.splice(0, random(4))) // the first ones become the last
			else list.sort(() => random(3) - 1)
			const kept = list.map(e => before.indexOf(e)).filter(i => i >= 0), longest = kept.map(() => 1)
			kept.forEach((n, i) => kept.slice(0, i).forEach((m, j) => { if (m < n) longest[i] = Math.max(longest[i], longest[j] + 1) }))
			const seen = new MutationObserver(() => {})
			seen.observe(at, {childList: true})
			place(at, list)
			const added = seen.takeRecords().reduce((n, r) => n + r.addedNodes.length, 0), want = list.length - Math.max(0, ...longest)
			if ([...at.children].some((e, i) => e !== list[i]) || at.children.length !== list.length || added !== want) wrong.push(added + ' of ' + list.length + ' are put in place, want ' + want)
		}
		return wrong
	})`, &wrong))
	if len(wrong) > 0 {
		p.t.Errorf("%d orders: %s", len(wrong), wrong[0])
	}
}
