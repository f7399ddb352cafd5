package browser

import (
	"strings"
	"testing"
)

// testAgents: the clients that are refused and have one user agent can be banned together.
func testAgents(t *testing.T, w *world) {
	c := startCaddy(t, "", "rate_limit {\n\t\tzone clients {\n\t\t\tkey {header.Client}\n\t\t\trate 1/1h\n\t\t\toverrides\n\t\t}\n\t}\n\trespond ok")
	p := w.browser.show(t, c.page())
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
