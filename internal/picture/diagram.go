package main

import (
	"fmt"
	"html"
	"strings"
)

// diagram is boxes with arrows between them.
type diagram struct {
	label         string // what the picture says, for readers who do not see it
	width, height int
	boxes         []box
	arrows        []arrow
	notes         []note
}

// box is a rectangle with a title and lines below it.
type box struct {
	class      string // "box", "yes", "no" or "wait"
	x, y, w, h int
	title      string // may have several lines
	lines      []string
}

// arrow leads along points, to the last of which it points. Its text is beside the point at (x, y).
type arrow struct {
	class  string // "way", "yes", "no" or "wait"; "line" has no head
	points []int  // x and y in turn
	text   string
	x, y   int
}

// note is a line of small text.
type note struct {
	x, y int
	text string
}

// diagramStyle is for light and dark backgrounds. What a color says is also said in words.
const diagramStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.small{font-size:12px;fill:#57606a}
rect{fill:#f6f8fa;stroke:#8c959f;stroke-width:1.2}path{fill:none;stroke:#57606a;stroke-width:1.5}path.head{fill:#57606a;stroke:none!important}
rect.yes{fill:#dafbe1;stroke:#1a7f37}rect.no{fill:#ffebe9;stroke:#cf222e}rect.wait{fill:#fff8c5;stroke:#9a6700}
path.yes{stroke:#1a7f37}path.no{stroke:#cf222e}path.wait{stroke:#9a6700}path.head.yes{fill:#1a7f37}path.head.no{fill:#cf222e}path.head.wait{fill:#9a6700}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}rect{fill:#151b23;stroke:#656c76}path{stroke:#9198a1}
path.head{fill:#9198a1}rect.yes{fill:#12261e;stroke:#3fb950}rect.no{fill:#25171c;stroke:#f85149}rect.wait{fill:#272115;stroke:#d29922}
path.yes{stroke:#3fb950}path.no{stroke:#f85149}path.wait{stroke:#d29922}path.head.yes{fill:#3fb950}path.head.no{fill:#f85149}path.head.wait{fill:#d29922}}
</style>
`

// draw returns the picture.
func (d diagram) draw() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n%s",
		d.width, d.height, html.EscapeString(d.label), diagramStyle)
	for _, a := range d.arrows {
		a.draw(&b)
	}
	for _, x := range d.boxes {
		x.draw(&b)
	}
	for _, n := range d.notes {
		fmt.Fprintf(&b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", n.x, n.y, html.EscapeString(n.text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

const lineHeight = 17

func (x box) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", x.class, x.x, x.y, x.w, x.h)
	titles := strings.Split(x.title, "\n")
	y := x.y + (x.h-lineHeight*(len(titles)+len(x.lines)))/2 + 13
	for i, line := range append(titles, x.lines...) {
		class := "title"
		if i >= len(titles) {
			class = "small"
		}
		fmt.Fprintf(b, `<text class="%s" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
			class, x.x+x.w/2, y+lineHeight*i, html.EscapeString(line))
	}
}

func (a arrow) draw(b *strings.Builder) {
	n := len(a.points)
	x, y := a.points[n-2], a.points[n-1]
	dx, dy := sign(x-a.points[n-4]), sign(y-a.points[n-3])
	b.WriteString(`<path class="` + a.class + `" d="`)
	for i := 0; i < n; i += 2 {
		command, back := "L", 0
		if i == 0 {
			command = "M"
		}
		if i == n-2 && a.class != "line" {
			back = 6 // the head covers the end
		}
		fmt.Fprintf(b, "%s%d %d", command, a.points[i]-dx*back, a.points[i+1]-dy*back)
	}
	b.WriteString(`"/>` + "\n")
	if a.class != "line" {
		fmt.Fprintf(b, `<path class="head %s" d="M%d %dL%d %dL%d %dZ"/>`+"\n", a.class,
			x, y, x-9*dx-5*dy, y-9*dy-5*dx, x-9*dx+5*dy, y-9*dy+5*dx)
	}
	if a.text != "" {
		fmt.Fprintf(b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", a.x, a.y, html.EscapeString(a.text))
	}
}

func sign(n int) int { return max(-1, min(n, 1)) }
