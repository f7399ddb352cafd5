package cli

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [<zone>]",
		Short: "Lists the most frequent, or most refused, keys",
		Long: `
Lists the keys of a zone, or of all zones, with the most requests on this Caddy in
the last five to ten minutes, or with --refused those with the most refusals.
"120..130" means at least 120 and at most 130.
`,
		Example:           "  caddy rate-limit top --refused\n  caddy rate-limit top clients -n 50",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
	}
	refused := cmd.Flags().Bool("refused", false, "Sort by refusals, and leave out keys without any")
	n := cmd.Flags().IntP("number", "n", 10, "How many keys of each zone, at most 1000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		query := url.Values{"n": {strconv.Itoa(*n)}}
		if *refused {
			query.Set("by", "refused")
		}
		if len(args) == 0 {
			return e.top("top", query)
		}
		return e.top(zonePath(args[0], "/top"), query)
	}
	return cmd
}

func (e *endpoint) top(path string, query url.Values) error {
	var lists []adminapi.Top
	answer := any(&lists)
	if path != "top" {
		lists = make([]adminapi.Top, 1)
		answer = &lists[0]
	}
	if done, err := e.read(path, query, answer); done || err != nil {
		return err
	}
	rows := [][]string{{"ZONE", "REQUESTS", "REFUSED", "KEY"}}
	for _, list := range lists {
		for _, k := range list.Keys {
			rows = append(rows, []string{
				shellWord(list.Zone), formatCount(k.Requests, k.RequestsError), formatCount(k.Refused, k.RefusedError), showKey(k.KeyText),
			})
		}
	}
	return e.table(rows)
}

// formatCount formats a count that may be higher by up to more.
func formatCount(least, more uint64) string {
	if more == 0 {
		return strconv.FormatUint(least, 10)
	}
	return fmt.Sprintf("%d..%d", least, least+more)
}
