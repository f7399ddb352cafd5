package browser

import (
	"strings"
	"testing"
)

// testAdvice: what the page says is to be done is done, and then it shows that it has helped.
func testAdvice(t *testing.T, w *world) {
	site := func(edits ...string) string {
		return strings.NewReplacer(edits...).Replace(`
	rate_limit {
		zone plain {
			match path /plain
			key {header.Client}
			rate 1/1h
		}
		zone shut {
			match path /shut
			key {client_ip}
			rate 9/1h
			block 127.0.0.0/8
		}
		zone keyed {
			match path /keyed
			key {header.Account}
			rate 9/1h
			missing_key reject
		}
	}
	respond ok`)
	}
	c := startCaddy(t, "", site())
	p := w.browser.show(t, c.page())
	p.untilText("#rules-body", "No zone allows them: add the option overrides to a zone")
	look := func(zone, key, want string) {
		t.Helper()
		p.choose("#why-zone", zone)
		p.write("#why-parts input", key)
		p.click("#why-form button")
		p.untilText("#why-body", want)
	}
	only := " Only the config can change that."
	c.times(1, "/shut")
	look("shut", "127.0.0.1", "block refuses some requests with status 403, whatever the key has used."+only)
	look("keyed", "", "rejects requests without a key with status 401 (missing_key reject)."+only)
	c.times(2, "/plain", "Client: pia")
	p.click(button("Exempt", "pia", "plain. This zone has no overrides: add the option overrides to it."))
	p.untilText("#news", "add the option overrides")
	if n := c.times(1, "/shut") + c.times(1, "/keyed") + c.times(1, "/plain", "Client: pia"); n != 0 {
		t.Fatalf("%d of 3 requests are admitted before, want 0", n)
	}

	c.reload("", site("rate 1/1h", "rate 1/1h\n\t\t\toverrides", "block 127.0.0.0/8", "block 192.0.2.0/24", "missing_key reject", "missing_key skip"))
	if n := c.times(1, "/shut") + c.times(1, "/keyed"); n != 2 {
		t.Errorf("%d of 2 requests are admitted after a change of the config, want 2", n)
	}
	p.untilDoing("no override", func() { p.click("#rules-load") },
		`document.getElementById('rules-body').innerText.includes('None. To ban a key, or to give it a limit of its own, look it up under Why?.')`)
	look("plain", "pia", "Zone plain is refusing this key")
	p.click(`#why-body [aria-label^="Exempt: pia"]`)
	p.confirm()
	p.untilText("#why-body", "an override exempts it")
	if n := c.times(2, "/plain", "Client: pia"); n != 2 {
		t.Errorf("%d of 2 requests of an exempt key are admitted, want 2", n)
	}
	p.click("#rules-load")
	p.untilText("#rules-body", "pia")
	p.takeProblems() // the browser logs that the stream ends
}
