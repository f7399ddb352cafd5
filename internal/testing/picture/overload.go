package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/picture/recording"
)

const (
	curvesTop    = 60
	curvesHeight = 200
)

// drawOverload returns the picture of an upstream with too much load that changes: the answers in time of each second,
// with each limit.
func drawOverload(r *recording.Overload) string {
	var b strings.Builder
	bottom := curvesTop + curvesHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Answers in time in each second, of an upstream whose workers change, with several limits">`+"\n", width, bottom+30)
	b.WriteString(style)
	fmt.Fprintf(&b, `<text x="8" y="22">%.0f requests a second for an upstream of %s: how many are answered within two seconds</text>`+"\n", r.Offered, r.Case)
	most := 1
	for _, run := range r.Runs {
		most = max(most, slices.Max(run.Useful))
	}
	x := func(second float64) float64 { return left + second/float64(r.Seconds)*(width-left-right) }
	y := func(n int) float64 { return float64(bottom) - float64(n)*curvesHeight/float64(most) }
	for part, workers := range r.Parts {
		from := float64(part) * float64(r.Seconds) / float64(len(r.Parts))
		fmt.Fprintf(&b, `<line class="grid edge" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text class="small" x="%.1f" y="%d">%d workers</text>`+"\n", x(from), curvesTop-14, x(from), bottom, x(from)+6, curvesTop-4, workers)
	}
	for n := 50; n <= most; n += 50 {
		fmt.Fprintf(&b, `<line class="grid edge" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text class="small" x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", left, y(n), width-right, y(n), left-6, y(n)+4, n)
	}
	for i, run := range r.Runs {
		class := []string{"no", "later", "yes"}[i%3]
		points := make([]string, len(run.Useful))
		sum := 0
		for second, n := range run.Useful {
			points[second] = fmt.Sprintf("%.1f %.1f", x(float64(second)+0.5), y(n))
			sum += n
		}
		fmt.Fprintf(&b, `<path class="%s" fill="none" style="stroke-width:2" d="M%s"/>`+"\n", class, strings.Join(points, "L"))
		at := curvesTop + 40 + 44*i
		fmt.Fprintf(&b, `<line class="%s" x1="8" y1="%d" x2="28" y2="%d"/><text x="36" y="%d">%s</text><text class="small" x="36" y="%d">%.0f a second</text>`+"\n",
			class, at-4, at-4, at, run.Name, at+16, float64(sum)/float64(r.Seconds))
	}
	fmt.Fprintf(&b, `<line class="base" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", left, bottom, width-right, bottom)
	for s := 0; s <= r.Seconds; s += 5 {
		fmt.Fprintf(&b, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n", x(float64(s)), bottom+20, s)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
