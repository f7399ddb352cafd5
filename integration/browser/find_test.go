package browser

import (
	"net/url"
	"strings"
	"testing"
)

// testFind: one box finds a client in all zones, also by a part of its key. The address of the page keeps the question.
func testFind(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: finn-4711")
	w.one.times(2, "/plain", "Client: finn-4711")
	p.press("/")
	p.until("the focus in the box", `document.activeElement.matches('#why-parts input')`)
	p.write("#why-parts input", "FINN-47")
	p.press("Enter")
	p.untilText("#find-body", "finn-4711")
	p.click(`#find-body [aria-label="Find finn-4711"]`)
	p.untilText("#why-body", "Zone clients is refusing this key: 5 of 5 used.")
	p.untilText("#why-body", "Zone plain is refusing this key: 1 of 1 used.")
	if got := eval[string](p, `location.hash`); got != "#key=finn-4711" {
		t.Errorf("the address has %s", got)
	}
	// All keys with a part are shown, also after something was done to one of them.
	w.one.times(4, "/login", "Client: fay", "User: ada")
	w.one.times(1, "/login", "Client: fay", "User: ben")
	p.write("#why-parts input", "fay")
	p.press("Enter")
	p.click(`#why-body [aria-label="Let through: fay ada in zone logins"]`)
	p.confirm()
	p.until("both keys", `document.getElementById('why-body').innerText.match(/Zone logins allows this key/g)?.length === 2`)

	sent := w.browser.newTab(t)
	sent.open(w.address + "#" + url.Values{"key": {"finn-4711"}, "zone": {"plain"}}.Encode())
	sent.untilText("#why-body", "Zone plain is refusing this key: 1 of 1 used.")
	if text := sent.text("#why-body"); strings.Contains(text, "Zone clients") {
		t.Errorf("other zones are shown, too: %s", text)
	}
	sent.noProblems()

	// An address that somebody else has made runs nothing.
	sent.open("about:blank")
	sent.open(w.address + "#" + url.Values{"key": {"<img src=x onerror=" + run1 + ">"}}.Encode())
	sent.untilText("#why-body", "Zone plain allows this key.")
	if eval[bool](sent, `window.ran !== undefined || Boolean(document.querySelector('main img'))`) {
		t.Error("a key in the address was run")
	}
	sent.noProblems()
}

// testClient: a client that several zones refuse has one row, with a chip for each zone, at most two buttons, and a menu.
func testClient(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: cleo")
	w.one.times(3, "/plain", "Client: cleo")
	const row = `[...document.querySelectorAll('.refused tbody tr')].filter(r => r.textContent.includes('cleo'))`
	p.until("one row with two zones", row+`.length === 1 && `+row+`[0].querySelectorAll('.chips li').length === 2`)
	p.until("two buttons and a menu", row+`[0].querySelectorAll('[data-label=Actions] > .actions > button').length === 2 && `+row+`[0].querySelectorAll('details').length === 1`)
	p.until("clients above zones", `document.getElementById('refused').getBoundingClientRect().top < document.getElementById('zones').getBoundingClientRect().top`)
	p.click(`.refused [aria-label="Let through: cleo in 2 zones"]`)
	command := p.confirm()
	if !strings.HasSuffix(command, " clients cleo") && !strings.HasSuffix(command, " plain cleo") || strings.Count(command, "reset") != 2 {
		t.Errorf("the command is %q", command)
	}
	p.untilText("#news", "Let through cleo in 2 zones.")
	if n := w.two.times(1, "/", "Client: cleo") + w.two.times(1, "/plain", "Client: cleo"); n != 2 {
		t.Errorf("%d of 2 requests are admitted, want 2", n)
	}

	p.click(`.refused [aria-label="More actions for cleo in 2 zones"]`)
	p.until("an open menu", row+`[0].querySelector('details').open`)
	p.press("Escape")
	p.until("a closed menu with the focus on it", `!`+row+`[0].querySelector('details').open && document.activeElement.matches('summary')`)
}

// testNetworks: a network that is banned is named by its prefix, at the clients that are refused and in the list.
func testNetworks(t *testing.T, w *world) {
	c := startCaddy(t, "\tservers {\n\t\ttrusted_proxies static 127.0.0.1\n\t}\n", "rate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n\t\t\trate 3/1h\n\t\t\toverrides\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.show(t, c.page())
	const network = "203.0.113.0/24"
	shell(t, "caddy rate-limit ban --address "+c.admin+" clients "+network)
	send := func() { c.times(1, "/", "X-Forwarded-For: 203.0.113.7") }
	p.untilDoing("a ban", send, `document.querySelector('#refused-body').innerText.includes('banned')`)
	p.click("#rules-load")
	p.untilText("#rules-body", network)
	p.click(`.rules [aria-label^="Unban: ` + network + `"]`)
	p.confirm()
	p.untilText("#rules-body", "None.")
	p.noProblems()
}
