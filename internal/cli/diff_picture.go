package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// bars are the columns of a picture, from few to many. None is a dot.
var bars = []rune("▁▂▃▄▅▆▇█")

// picture draws how many requests two configs refuse over time, with one scale. It is empty if they refuse none.
func picture(l *adminapi.LogDiff) (lines []string) {
	most := max(slices.Max(append(l.WasOver, 0)), slices.Max(append(l.IsOver, 0)))
	if most == 0 {
		return nil
	}
	row := func(values []int64) string {
		var b strings.Builder
		for _, n := range values {
			if n == 0 {
				b.WriteRune('·')
			} else {
				b.WriteRune(bars[(n*int64(len(bars))-1)/most])
			}
		}
		return b.String()
	}
	return []string{
		"refused before  " + row(l.WasOver),
		"refused now     " + row(l.IsOver),
		fmt.Sprintf("from %s UTC, %s each, █ is %d", l.Begin.UTC().Format(time.DateTime), duration.Format(time.Duration(l.Step)*time.Second), most),
	}
}
