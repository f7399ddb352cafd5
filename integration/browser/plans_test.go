package browser

import (
	"fmt"
	"strings"
	"testing"
)

// testPlans: what each plan gives, which one is the default, and how many keys have it.
func testPlans(t *testing.T, w *world) {
	c := startCaddy(t, "", `
	rate_limit {
		zone api {
			match path /
			key {header.Client}
			plan {header.Plan} {
				free  2/1m
				pro   500/1m
				staff unlimited
				default free
			}
		}
	}
	respond ok`)
	p := w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.open(c.page("--no-open"))
	p.untilText("#link", "live")
	for i := range 3 {
		c.times(3, "/", fmt.Sprint("Client: free-", i), "Plan: free")
	}
	c.times(4, "/", "Client: big", "Plan: pro")
	p.click("[data-zone=api] .open")
	for _, want := range []string{"free default\t2 per minute", "pro\t500 per minute", "staff\tno limit"} {
		p.until(want, `[...document.querySelectorAll('.plans tbody tr')].some(r => r.innerText.replace(/[\n ]+/g, ' ').replace(/ ?\t ?/g, '\t').startsWith(`+quoted(want)+`))`)
	}
	const cells = `[...document.querySelectorAll('.plans tbody tr')].map(r => [...r.querySelectorAll('.number')].map(e => e.innerText).join(' ')).join('; ')`
	if got := eval[string](p, cells); got != "3 9 33%; 1 4 0%; 0 0 –" {
		t.Errorf("keys, requests and shares are %q", got)
	}
	p.untilText("[data-zone=api] .panel", "4 keys of the last few minutes.")
	p.untilText("#refused-body", "api, plan free")
	p.noProblems()
}

// testAgents: the clients that are refused and have one user agent can be banned together, and this can be taken back.
func testAgents(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone clients {\n\t\t\tkey {header.Client}\n\t\t\trate 1/1h\n\t\t\toverrides\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.newTab(t)
	p.resize(1280, 900, "light")
	p.open(c.page("--no-open"))
	clients := map[string]string{"bot-1": "bot/1 <b>", "bot-2": "bot/1 <b>", "bot-3": "bot/1 <b>", "ann": "browser/1"}
	p.untilDoing("the agents of all", func() {
		for client, agent := range clients {
			c.times(2, "/", "Client: "+client, "User-Agent: "+agent)
		}
	}, `import(new URL('state.js', document.baseURI)).then(m => [...m.state.zones[0].refusing.values()].filter(r => r.last?.user_agent).length === 4)`)
	p.click(`.refused [aria-label="Ban all with the user agent of bot-2 in zone clients"]`)
	p.untilText("#dialog-title", "Ban these 3 keys?")
	p.untilText("#dialog-text", "bot/1 <b>")
	if command := p.confirm(); strings.Count(command, "\n") != 2 || strings.Contains(command, "ann") {
		t.Errorf("the command is %s", command)
	}
	p.untilText("#news", "Banned 3 clients in zone clients")
	for client := range clients {
		if banned := c.state("clients", client).Ban != nil; banned != strings.HasPrefix(client, "bot") {
			t.Errorf("%s is banned: %v", client, banned)
		}
	}
	p.click("#news button")
	p.untilText("#news", "As before: 3 clients in zone clients.")
	for client := range clients {
		if c.state("clients", client).Ban != nil {
			t.Errorf("%s is still banned", client)
		}
	}
	p.noProblems()
}

// testCommands: beside each figure is a command that shows the same, and runs.
func testCommands(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(6, "/", "Client: coco")
	p.click("[data-zone=clients] .open")
	p.write("#why-parts input", "coco")
	p.click("#why-form button")
	p.untilText("#why-body", "Zone clients refuses it")
	commands := eval[[]string](p, `[...document.querySelectorAll('#refused .terminal, #zones .terminal, #stores .terminal, #decisions .terminal, #rules .terminal, #networks .terminal, #why-body .verdict:first-of-type .terminal')].map(e => e.title)`)
	if len(commands) < 10 {
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
