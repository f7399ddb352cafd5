package browser

import (
	"strings"
	"testing"
)

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
