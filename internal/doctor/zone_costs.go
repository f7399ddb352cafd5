package doctor

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// readsCosts finds zones in which a tenth of the responses, or more, do not say a cost that can be read.
func readsCosts(z *Zone) []result {
	most, unread, of := stats.Unread(z.Costs)
	switch {
	case of == 0:
		return nil
	case unread*10 < of || unread < enough/10:
		return ok("%d of %d responses did not say their cost", unread, of)
	}
	var causes []string
	for r, n := range z.Costs {
		if stats.CostResult(r).Fix() != (advice.Text{}) && n > 0 {
			causes = append(causes, fmt.Sprintf("%s %d", stats.CostNames[r], n))
		}
	}
	return warn(most.Fix(), "%d of %d responses did not say a cost that can be read (%s)", unread, of, strings.Join(causes, ", "))
}

// charges finds zones of which no response is ever charged, so that they refuse nothing.
func charges(z *Zone) []result {
	switch {
	case z.Judged == 0:
		return nil
	case z.Charged == 0 && z.Judged >= enough:
		return warn(chargeOthers.With(z.LastStatus), "none of %d responses was charged, because charge matches none", z.Judged)
	}
	return ok("%d of %d responses were charged", z.Charged, z.Judged)
}
