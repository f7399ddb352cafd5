package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// testWhy: a key in all zones, or the parts of a key in one, with a sentence.
func testWhy(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: wim")
	p.write("#why-parts input", "wim")
	p.click("#why-form button")
	p.untilText("#why-body", "Zone clients is refusing this key: 5 of 5 used. Next request allowed at")
	p.untilText("#why-body", "All of it back")
	p.untilText("#why-body", "Zone plain allows this key.")
	p.untilText("#why-body", "0 of 1")
	p.untilText("#why-body", "Zone logins: the key is ")

	p.click(`.refused [aria-label="Why? wim in zone clients"]`)
	p.until("only this zone", `document.querySelectorAll('#why-body .verdict').length === 1 && document.getElementById('why-zone').value === 'clients'`)

	w.one.times(2, "/login", "Client: wim", "User: w. 1")
	p.choose("#why-zone", "logins")
	p.until("a field for each part", `document.querySelectorAll('#why-parts input').length === 2`)
	p.write("#why-parts label:nth-child(1) input", "wim")
	p.write("#why-parts label:nth-child(2) input", "w. 1")
	p.press("Enter")
	p.untilText("#why-body", "Zone logins allows this key.")
	p.untilText("#why-body", "2 of 3")
	p.choose("#why-zone", "hot")
	p.untilText("#why-parts", "no key")
	p.click("#why-form button")
	p.untilText("#why-body", "Zone hot allows this key.")

	p.choose("#why-zone", "clients")
	p.write("#why-parts input", "wim")
	p.click("#why-form button")
	p.click(`#why-body [aria-label^="Let through: wim"]`)
	p.confirm()
	p.untilText("#why-body", "Zone clients allows this key.")
	p.untilText("#why-body", "0 of 5")
}

// testDecisions: decisions come by themselves; they can be held and chosen.
func testDecisions(t *testing.T, w *world) {
	p := w.page(t)
	list := func() string { return p.text("#decisions-body") }
	sends := func(client, want string) { // until the page shows it: it may have just asked for others
		t.Helper()
		p.untilDoing(want, func() { w.one.times(2, "/plain", "Client: "+client) }, fmt.Sprintf(`document.getElementById('decisions-body').innerText.includes(%s)`, quoted(want)))
	}
	p.choose("#decisions-zone", "plain")
	sends("dora", "dora")
	sends("dora", "limited")
	w.one.times(1, "/", "Client: dora")
	if text := list(); strings.Contains(text, "\tclients\t") {
		t.Errorf("with a filter other zones are shown: %s", text)
	}
	p.click("#pause")
	p.untilDoing("a count of what has come", func() { w.one.times(2, "/plain", "Client: paul") }, `/^Paused. New since then: [1-9]/.test(document.getElementById('decisions-note').innerText)`)
	if strings.Contains(list(), "paul") {
		t.Error("a list that is held goes on")
	}
	p.click("#pause")
	sends("paul", "paul")
	p.write("#decisions-text", "dora")
	p.until("only dora", `!document.getElementById('decisions-body').innerText.includes('paul')`)
	p.write("#decisions-text", "none of them")
	p.untilText("#decisions-body", "No decision matches the filters")
	p.write("#decisions-text", "")
	p.choose("#decisions-outcome", "limited")
	sends("dora", "dora")
	if text := list(); strings.Contains(text, "allowed") {
		t.Errorf("with a filter other outcomes are shown: %s", text)
	}
}

// testStores: how the store is, how fast, and who else uses it.
func testStores(t *testing.T, w *world) {
	p := w.page(t)
	p.untilText("#stores-body h3", "answers")
	p.untilText("#stores-body", "2 instances")
	p.untilText("#stores-body", "closed")
	p.untilDoing("calls", func() { w.one.times(30, "/hot") }, `document.querySelector('#stores-body').innerText.includes('99 % within')`)
	p.untilText("#sentence", "answers in")
}

// testLocale: numbers and times are those of the reader.
func testLocale(t *testing.T, w *world) {
	p := w.browser.newTab(t)
	p.do("Emulation.setUserAgentOverride", map[string]any{"userAgent": "test", "acceptLanguage": "de-DE,de"}, nil)
	p.do("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "Asia/Tokyo"}, nil)
	p.open(w.address)
	p.untilText("[data-zone=hot]", "1.000.000 per hour")
	p.untilDoing("a time in Tokyo", func() { w.one.times(1, "/plain", "Client: lea") }, `(() => {
		const shown = document.querySelector('.decisions .time span')?.innerText
		return /^\d\d:\d\d:\d\d$/.test(shown) && Math.abs(Number(shown.slice(0, 2)) - (new Date().getUTCHours() + 9) % 24) <= 1
	})()`)
	p.noProblems()
}

// testCommands: beside each figure is a command that shows the same, and runs.
func testCommands(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: coco")
	p.click("[data-zone=clients] .open")
	p.write("#why-parts input", "coco")
	p.click("#why-form button")
	p.untilText("#why-body", "Zone clients is refusing this key")
	commands := eval[[]string](p, `[...document.querySelectorAll('#refused .terminal, #zones .terminal, #stores .terminal, #decisions .terminal, #rules .terminal, #why-body .verdict:first-of-type .terminal')].map(e => e.title)`)
	if len(commands) < 9 {
		t.Errorf("only %q", commands)
	}
	for _, command := range commands {
		if !strings.Contains(command, " --address "+w.one.admin) {
			t.Errorf("%s: it asks another Caddy", command)
		}
		if !strings.Contains(command, " watch ") { // which does not end
			shell(t, command)
		}
	}
}

// TestWholeFleet: the page of one instance shows the counts of all that share its store, and which ones these are.
func TestWholeFleet(t *testing.T) {
	browser, redis := startChromium(t), redistest.Start(t)
	options := "servers {\ntrusted_proxies static 127.0.0.0/8\n}\nrate_limit {\nstore redis {\naddress " + redis.Addr() + "\n}\n}"
	site := "rate_limit {\nzone shared {\nmatch path /\nkey {header.Client}\nevents 5\nwindow 1h\n}\nzone from {\nmatch path /from\nkey {client_ip}\nevents 5\nwindow 1h\n}\n}\nrespond ok"
	one, two := startCaddy(t, options, site), startCaddy(t, options, site)
	p := browser.newTab(t)
	p.open(one.page())
	p.until("the switch", `!document.getElementById('fleet').hidden`)
	two.times(7, "/", "Client: tom")
	p.click("#fleet-on")
	p.untilText("#counted", "2 instances")
	p.untilText("#instances", fmt.Sprintf("(process %d)", two.process.PID()))
	p.untilText("#refused-body", "tom")
	if eval[bool](p, `document.querySelector('.refused tbody tr:not(.past)') !== null`) {
		t.Error("a client is refused now that was refused before the page knew of the instance")
	}
	must(t, two.process.Kill())
	p.untilText("#instances", "silent")
	p.click("#fleet-on")
	p.untilText("#counted", "this instance only")
	p.noProblems()
}
