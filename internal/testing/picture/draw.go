package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	left, right = 250, 20
	width       = 1000
	top         = 92
	laneHeight  = 54
	tick        = 22
)

// style is for light and dark backgrounds.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}
.grid{stroke:#d0d7de;stroke-width:1}.edge{stroke-dasharray:3 3}.base{stroke:#8c959f;stroke-width:1}
.come{stroke:#57606a;stroke-width:2}.yes{stroke:#1a7f37;stroke-width:3}.no{stroke:#cf222e;stroke-width:3}
.wait{stroke:#bf8700;stroke-width:1.5}.later{stroke:#bf8700;stroke-width:3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#3d444d}.base{stroke:#656c76}
.come{stroke:#9198a1}.yes{stroke:#3fb950}.no{stroke:#f85149}.wait,.later{stroke:#d29922}}
</style>
`

// draw returns the picture.
func draw(traffic []time.Duration, lanes []lane) string {
	var b strings.Builder
	height := top + len(lanes)*laneHeight + 34
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="What each algorithm makes of the same requests">`+"\n", width, height)
	b.WriteString(style)
	legend(&b)
	for s := 0; s <= int(span.Seconds()); s++ {
		class := "grid"
		if s%3 != 0 {
			class += " edge"
		}
		x := xOf(time.Duration(s) * time.Second)
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" y1="60" x2="%.1f" y2="%d"/>`+"\n", class, x, x, height-28)
		if s%3 == 0 {
			fmt.Fprintf(&b, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n", x, height-12, s)
		}
	}
	fmt.Fprintf(&b, `<text x="8" y="%d">requests</text>`+"\n", top-8)
	for _, at := range traffic {
		stroke(&b, "come", at, top-6, tick-4)
	}
	for i, l := range lanes {
		drawLane(&b, l, l.decide(traffic), top+(i+1)*laneHeight-12)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func legend(b *strings.Builder) {
	x := 8
	for _, word := range []struct {
		class, text string
		width       int
	}{
		{"yes", "passes at once", 125}, {"later", "passes after a wait", 150}, {"no", "is refused", 95},
	} {
		fmt.Fprintf(b, `<line class="%s" x1="%d" y1="12" x2="%d" y2="30"/><text x="%d" y="26">%s</text>`+"\n", word.class, x+4, x+4, x+14, word.text)
		x += word.width
	}
	fmt.Fprintf(b, `<text class="small" x="%d" y="26">each limit is 6 requests in 3 s, except for the last one; windows of the clock begin at the solid lines</text>`+"\n", x+10)
}

func drawLane(b *strings.Builder, l lane, outcomes []outcome, y int) {
	fmt.Fprintf(b, `<text x="8" y="%d">%s</text>`+"\n", y-10, l.name)
	if l.option != "" {
		fmt.Fprintf(b, `<text class="small" x="8" y="%d">%s</text>`+"\n", y+4, l.option)
	}
	fmt.Fprintf(b, `<line class="base" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", left, y, width-right, y)
	passed := 0
	for _, o := range outcomes {
		switch {
		case !o.allowed:
			stroke(b, "no", o.at, y+10, 10)
		case o.delay > 0:
			passed++
			end := min(o.at+o.delay, span)
			height := tick * float64(end-o.at) / float64(o.delay)
			fmt.Fprintf(b, `<path class="wait" fill="none" d="M%.1f %dL%.1f %.1f"/>`+"\n", xOf(o.at), y, xOf(end), float64(y)-height)
			if end == o.at+o.delay {
				stroke(b, "later", end, y, tick)
			}
		default:
			passed++
			stroke(b, "yes", o.at, y, tick)
		}
	}
	fmt.Fprintf(b, `<text class="small" x="%d" y="%d" text-anchor="end">%d of %d</text>`+"\n", left-10, y-10, passed, len(outcomes))
}

// stroke draws a request.
func stroke(b *strings.Builder, class string, at time.Duration, y, height int) {
	fmt.Fprintf(b, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", class, xOf(at), y, xOf(at), y-height)
}

// xOf returns the horizontal position of a time.
func xOf(at time.Duration) float64 {
	return left + float64(at)/float64(span)*(width-left-right)
}
