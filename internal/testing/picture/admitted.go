package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/picture/recording"
)

const (
	panelHeight = 130 // of a fleet
	panelTop    = 70
	barsHeight  = 90
	mostShown   = 1000 // requests in a second
)

// elsewhere is what the delayed sync of APISIX's limit-count admits in a second under the same load, by the tests of its
// pull request 13704: before and after it.
var elsewhere = []int64{590, 438}

// drawAdmitted returns the picture of a recording: how many requests passed in each second.
func drawAdmitted(r *recording.Recording) string {
	var b strings.Builder
	height := panelTop + len(r.Fleets)*panelHeight + 20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="How many requests two instances admit together in each second, with a limit of %d and %d offered">`+"\n", width, height, r.Limit, r.Offered)
	b.WriteString(style)
	fmt.Fprintf(&b, `<text x="8" y="22">%d requests a second may pass, %d are offered to two instances: how many pass in each second, and how many are refused</text>`+"\n", r.Limit, r.Offered)
	fmt.Fprintf(&b, `<text class="small" x="8" y="42">dashed: what the delayed sync of APISIX admits under this load, by its pull request 13704: %d before it, %d after it</text>`+"\n", elsewhere[0], elsewhere[1])
	for i := range r.Fleets {
		drawFleet(&b, r, &r.Fleets[i], panelTop+i*panelHeight+barsHeight+20)
	}
	for s := 0; s <= r.Seconds; s += 10 {
		fmt.Fprintf(&b, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n", atSecond(r, float64(s)), height-8, s)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawFleet draws a bar for each second, on a line at a height.
func drawFleet(b *strings.Builder, r *recording.Recording, f *recording.Fleet, y int) {
	up := func(n int64) float64 { return float64(y) - float64(min(n, mostShown))*barsHeight/mostShown }
	fmt.Fprintf(b, `<text x="8" y="%d">%s</text>`+"\n", y-64, f.Name)
	for i, line := range said(r, f) {
		fmt.Fprintf(b, `<text class="small" x="8" y="%d">%s</text>`+"\n", y-46+16*i, line)
	}
	if f.Outage {
		from, to := atSecond(r, r.Down[0]), atSecond(r, r.Down[1])
		fmt.Fprintf(b, `<path class="wait" fill="none" d="M%.1f %dH%.1f"/><text class="small" x="%.1f" y="%d" text-anchor="middle">Redis is down</text>`+"\n", from, y-barsHeight, to, (from+to)/2, y-barsHeight-4)
	}
	step := float64(width-left-right) / float64(r.Seconds)
	for second, n := range f.Admitted {
		x := atSecond(r, float64(second)+0.5)
		fmt.Fprintf(b, `<path style="stroke-width:%.1f" class="yes" d="M%.1f %dV%.1f"/>`, step-2, x, y, up(n))
		if n < r.Offered {
			fmt.Fprintf(b, `<path style="stroke-width:%.1f;opacity:.35" class="no" d="M%.1f %.1fV%.1f"/>`, step-2, x, up(n), up(r.Offered))
		}
	}
	fmt.Fprintf(b, "\n"+`<line class="base" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", left, y, width-right, y)
	for _, n := range elsewhere {
		fmt.Fprintf(b, `<line class="base edge" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text class="small" x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", left, up(n), width-right, up(n), left-6, up(n)+4, n)
	}
	fmt.Fprintf(b, `<line class="come" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", left, up(r.Limit), width-right, up(r.Limit))
}

// said is what is said of a fleet in lines: from how many to how many passed in a second. The seconds in which Redis
// went and came back have a line of their own.
func said(r *recording.Recording, f *recording.Fleet) []string {
	var usual, around []int64
	for second, n := range f.Admitted {
		if f.Outage && (second == int(r.Down[0]) || second == int(r.Down[1])) {
			around = append(around, n)
		} else {
			usual = append(usual, n)
		}
	}
	least, most := slices.Min(usual), slices.Max(usual)
	lines := []string{fmt.Sprintf("%d to %d pass", least, most)}
	if least == most {
		lines[0] = fmt.Sprintf("%d pass in each", most)
	}
	if len(around) > 0 {
		lines = append(lines, fmt.Sprintf("%d when Redis dies", around[0]), fmt.Sprintf("%d when an empty one starts", around[1]))
	}
	return lines
}

// atSecond returns the horizontal position of a second.
func atSecond(r *recording.Recording, s float64) float64 {
	return left + s/float64(r.Seconds)*(width-left-right)
}
