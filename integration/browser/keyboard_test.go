package browser

import (
	"fmt"
	"testing"
)

// reach presses Tab until an element has the focus.
func (p *tab) reach(selector string) {
	p.t.Helper()
	for range 500 {
		if eval[bool](p, `document.activeElement.matches(`+quoted(selector)+`)`) {
			return
		}
		p.press("Tab")
	}
	p.t.Fatalf("the keyboard does not reach %s; the page shows:\n%s", selector, p.text("body"))
}

// enter reaches an element, and presses Enter on it.
func (p *tab) enter(selector string) {
	p.t.Helper()
	p.reach(selector)
	p.press("Enter")
}

// inMenu reaches an action of kay, in the menu or beside it. The menu is opened again if the page has drawn it again.
func (p *tab) inMenu(selector string) {
	p.t.Helper()
	for range 10 {
		p.enter(`.refused [aria-label="More actions for kay in zone clients"]`)
		for range 10 {
			p.press("Tab")
			if eval[bool](p, `document.activeElement.matches(`+quoted(selector)+`)`) {
				return
			}
		}
	}
	p.t.Fatalf("the keyboard does not reach %s; the page shows:\n%s", selector, p.text("body"))
}

// keeps fails the test if nothing has the focus, so that Tab would begin again at the top of the page.
func (p *tab) keeps(after string) {
	p.t.Helper()
	p.until("the focus after "+after, `document.activeElement !== document.body`)
}

// testKeysAlone: the keyboard reaches all that can be pressed or written to, and each action can be done with it
// alone. The focus is never lost.
func testKeysAlone(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone clients {\n\t\t\tkey {header.Client}\n\t\t\trate 1/1h\n\t\t\toverrides\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.show(t, c.page())
	refused := func() { c.times(2, "/", "Client: kay") }
	p.untilDoing("a row", refused, `document.querySelector('.refused tbody')?.innerText.includes('kay')`)
	p.until("the lists", `document.querySelector('#rules-body').innerText.includes('None.')`)

	must(t, p.try(`(() => {
		window.reached = new Set()
		addEventListener('focusin', e => reached.add(e.target))
		window.wanted = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')].filter(e => e.checkVisibility())
	})()`, nil))
	if n := eval[int](p, `wanted.length`); n < 20 {
		t.Errorf("only %d elements can be used", n)
	}
	const left = `wanted.filter(e => e.isConnected && !reached.has(e))`
	for range 200 {
		p.press("Tab")
	}
	if missing := eval[[]string](p, left+`.map(e => e.outerHTML.slice(0, 150))`); len(missing) > 0 {
		t.Errorf("the keyboard does not reach %q", missing)
	}

	act := func(label, news string) {
		t.Helper()
		p.until("closed menus", `!document.querySelector('details.menu[open]')`)
		p.inMenu(button(label, "kay", "clients"))
		p.press("Enter")
		p.until("the dialog", `document.getElementById('dialog').open`)
		p.enter("#dialog-yes")
		p.untilText("#news", news+" kay")
		p.keeps(label)
	}
	act("Ban", "Banned")
	if s := c.state("clients", "kay"); s.Ban == nil {
		t.Errorf("Ban has no effect: %+v", s)
	}
	p.untilDoing("a button that ends the ban", refused, `document.querySelector(`+quoted(button("Unban", "kay", "clients"))+`)`)
	act("Unban", "Unbanned")
	p.enter(button("Let through", "kay", "clients"))
	p.enter("#dialog-yes")
	p.untilText("#news", "Let through kay")
	p.keeps("Let through")
	if used := c.state("clients", "kay").Used; used != 0 {
		t.Errorf("the reset has no effect: %d used", used)
	}

	act("Raise", "Raised")
	p.enter("#rules-load")
	p.enter(`.rules [aria-label^="Clear: kay"]`)
	p.until("the dialog", `document.getElementById('dialog').open`)
	p.enter("#dialog-yes")
	p.untilText("#rules-body", "None.")
	p.keeps("Clear")

	p.enter(`[data-zone=clients] .open`)
	p.until("the panel", `!document.querySelector('[data-zone=clients] .detail').hidden`)
	p.enter(`.refused [aria-label="Why? kay in zone clients"]`)
	p.untilText("#why-body", "Zone clients allows this key.")
	if got := eval[string](p, `document.activeElement.id`); got != "why-title" {
		t.Errorf("after Why? the focus is on %q", got)
	}
	p.enter(`#why-body [aria-label^="Let through: kay"]`)
	p.until("the dialog", `document.getElementById('dialog').open`)
	p.enter("#dialog-yes")
	p.untilText("#news", "Let through kay")
	p.until("the focus on the same button", `document.activeElement.matches('#why-body [aria-label^="Let through: kay"]')`)
	p.enter("#pause")
	p.until("a pause", `document.getElementById('pause').getAttribute('aria-pressed') === 'true'`)
	p.noProblems()
}

// testFocus: after a reload the focus is where it was, although all rows are made again.
func testFocus(t *testing.T, w *world) {
	site := "rate_limit {\n\t\tzone clients {\n\t\t\tkey {header.Client}\n\t\t\trate 1/1h\n\t\t\toverrides\n\t\t}\n\t}\n\trespond "
	c := startCaddy(t, "", site+"ok")
	p := w.browser.show(t, c.page())
	p.untilDoing("a row", func() { c.times(2, "/", "Client: fay") }, `document.querySelector('.refused tbody')?.innerText.includes('fay')`)
	for i, selector := range []string{button("Let through", "fay", "clients"), `[data-zone=clients] .open`} {
		p.reach(selector)
		must(t, p.try(`window.had = document.activeElement`, nil))
		c.reload("", site+fmt.Sprint("ok", i)+"\n"+fmt.Sprintf("header X %d", i))
		p.untilText("#news", "Connected again")
		p.until("the focus on "+selector, `document.activeElement.matches(`+quoted(selector)+`)`)
		must(t, p.try(`document.getElementById('news').textContent = ''`, nil))
	}
	p.takeProblems() // the browser logs that the stream ends
}

// named fails the test if something in the accessibility tree of the browser, which screen readers read, has no name.
func (p *tab) named(where string) {
	p.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
			Node       int `json:"backendDOMNodeId"`
		}
	}
	p.do("Accessibility.getFullAXTree", nil, &tree)
	wanted := map[any]bool{}
	for _, role := range []string{
		"button", "link", "textbox", "searchbox", "combobox", "checkbox", "slider", "spinbutton", "DisclosureTriangle", "image", "img", "dialog", "region", "navigation", "search",
		"columnheader", "rowheader", "heading", "option", "MenuListOption",
	} {
		wanted[role] = true
	}
	n := 0
	for _, node := range tree.Nodes {
		if node.Ignored || !wanted[node.Role.Value] {
			continue
		}
		if n++; node.Name.Value == nil || node.Name.Value == "" {
			var found struct{ OuterHTML string }
			p.do("DOM.getOuterHTML", map[string]any{"backendNodeId": node.Node}, &found)
			p.t.Errorf("%s: a %v without a name: %.200s", where, node.Role.Value, found.OuterHTML)
		}
	}
	if n < 10 {
		p.t.Errorf("%s: the accessibility tree has only %d elements that need names", where, n)
	}
}
