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
	p.untilText("#why-body", "Zone clients refuses it")
	p.resize(360, 740, "light")
	p.until("nothing that is wider than the window", `document.documentElement.scrollWidth <= 360`)
	small := eval[string](p, `[...document.querySelectorAll('button:not(.sort), select, summary, input:not([type=checkbox]), nav a')].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 44).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join('\n')`)
	if small != "" {
		t.Errorf("targets below 44 pixels:\n%s", small)
	}
	p.click(`.refused [aria-label="More actions for theo in zone clients"]`)
	p.until("nothing wider with an open menu", `document.documentElement.scrollWidth <= 360`)
}

// testSteady: while nobody is refused, what is on the page does not move, from the first picture on.
func testSteady(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone calm {\n\t\t\tkey {header.Client}\n\t\t\trate 1000000/1h\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `window.moved = []
		new PerformanceObserver(list => { for (const e of list.getEntries()) moved.push([e.value, e.sources.map(s => s.node?.id || s.node?.className || s.node?.nodeName).join()]) }).observe({type: 'layout-shift', buffered: true})`}, nil)
	p.open(c.page("--no-open"))
	p.untilDoing("some history", func() { c.times(1, "/", "Client: carl") }, `import(new URL('state.js', document.baseURI)).then(m => m.state.zones[0]?.history.times.length > 4)`)
	if moved := eval[[][2]any](p, `moved`); len(moved) > 0 {
		sum := 0.0
		for _, m := range moved {
			sum += m[0].(float64)
		}
		if sum > 0.03 {
			t.Errorf("the page moves by %.3f: %v", sum, moved)
		}
	}
	p.noProblems()
}

// testManyKeys: 10,000 clients that are refused do not make the page grow, and none keeps it busy for long.
func testManyKeys(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone many {\n\t\t\tkey {header.Client}\n\t\t\tevents 0\n\t\t\twindow 1h\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.open(c.page("--no-open"))
	p.untilText("#link", "live")
	n := 0
	send := func() {
		for range 500 {
			c.get("/", fmt.Sprintf("Client: client-%d", n))
			n++
		}
	}
	for n < 2000 {
		send()
	}
	p.click("#refused-all")
	p.untilDoing("many rows", send, `document.querySelectorAll('.refused tbody tr').length > 20`)
	for n < 10000 {
		send()
	}
	var size struct{ Elements, Rows, Known int }
	must(t, p.try(`import(new URL('state.js', document.baseURI)).then(m => ({Elements: document.querySelectorAll('*').length, Rows: document.querySelectorAll('.refused tbody tr').length, Known: m.state.zones[0].refusing.size}))`, &size))
	if size.Elements > 12000 || size.Rows > 201 || size.Known > 220 {
		t.Errorf("after %d clients the page has %+v", n, size)
	}
	p.untilDoing("a count of them", send, `/\d+ clients? now/.test(document.getElementById('refused-note').innerText)`)
	p.noProblems()
}
