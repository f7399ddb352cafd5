package main

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
)

// recording is what a terminal has shown: TestGoldenRecording in integration writes it.
//
//go:embed recording.txt
var recording string

const (
	columns      = 100
	columnWidth  = 8 // at least; fonts differ
	rowHeight    = 19
	terminalTop  = 44 // below the title bar
	terminalSide = 18
	// A loop shows all commands for some seconds, and then one after the other. So a still of the beginning
	// shows everything.
	loop, hold, step = 20, 11, 2.2 // seconds
)

// terminalStyle is for light and dark backgrounds. Without animations everything is shown.
const terminalStyle = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#24292f;white-space:pre}
rect{fill:#f6f8fa;stroke:#d0d7de}circle{fill:#d0d7de}.prompt{fill:#57606a}.command{font-weight:600}.red{fill:#cf222e}.green{fill:#1a7f37}.yellow{fill:#9a6700}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#151b23;stroke:#3d444d}circle{fill:#3d444d}.prompt{fill:#9198a1}.red{fill:#f85149}.green{fill:#3fb950}.yellow{fill:#d29922}}
@media(prefers-reduced-motion:reduce){g{animation:none!important}}
`

// terminal draws the recording.
func terminal(recording string) string {
	screens := strings.Split(strings.TrimSuffix(recording, "\n"), "\n$ ")
	var groups, style strings.Builder
	y := terminalTop
	for i, screen := range screens {
		style.WriteString(appear(2*i, float64(i)*step))
		style.WriteString(appear(2*i+1, float64(i)*step+step/3))
		command, output, _ := strings.Cut(strings.TrimPrefix(screen, "$ "), "\n")
		y += rowHeight
		fmt.Fprintf(&groups, `<g class="s%d"><text x="%d" y="%d"><tspan class="prompt">$ </tspan><tspan class="command">%s</tspan></text></g>`+"\n",
			2*i, terminalSide, y, html.EscapeString(command))
		fmt.Fprintf(&groups, `<g class="s%d">`+"\n", 2*i+1)
		for line := range strings.Lines(output) {
			y += rowHeight
			if line = strings.TrimSuffix(line, "\n"); line != "" {
				fmt.Fprintf(&groups, `<text x="%d" y="%d">%s</text>`+"\n", terminalSide, y, spans(line))
			}
		}
		groups.WriteString("</g>\n")
		y += rowHeight / 2
	}
	width, height := columns*columnWidth+2*terminalSide, y+rowHeight/2
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n<style>%s%s</style>\n", width, height,
		"A terminal: top shows the clients that are refused most, get why one of them is refused and until when, reset lets it through, and get shows that it is allowed.",
		terminalStyle, style.String())
	fmt.Fprintf(&b, `<rect x="1" y="1" width="%d" height="%d" rx="8"/>`+"\n", width-2, height-2)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle cx="%d" cy="22" r="6"/>`+"\n", terminalSide+6+i*20)
	}
	b.WriteString(groups.String() + "</svg>\n")
	return b.String()
}

// appear returns the style of a group that disappears in each loop, and appears again after some seconds.
func appear(group int, after float64) string {
	if after == 0 {
		return "" // there is always something to see
	}
	gone, back := hold*100.0/loop, (hold+after)*100.0/loop
	return fmt.Sprintf("@keyframes s%d{0%%,%.2f%%{opacity:1}%.2f%%,%.2f%%{opacity:0}%.2f%%,100%%{opacity:1}}.s%d{animation:s%d %ds infinite}\n",
		group, gone, gone+0.01, back, back+0.01, group, group, loop)
}

// spans turns the escape sequences of colors into classes.
func spans(line string) string {
	var b strings.Builder
	open := false
	for {
		text, rest, found := strings.Cut(line, "\x1b[")
		b.WriteString(html.EscapeString(text))
		if !found {
			break
		}
		var code string
		code, line, _ = strings.Cut(rest, "m")
		if open {
			b.WriteString("</tspan>")
		}
		class, known := map[string]string{"31": "red", "32": "green", "33": "yellow"}[code]
		if open = known; known {
			b.WriteString(`<tspan class="` + class + `">`)
		}
	}
	if open {
		b.WriteString("</tspan>")
	}
	return b.String()
}
