package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func usageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "usage [<zone> [<key>...]]",
		Short: "Prints what keys have used in each window, as NDJSON",
		Long: `
Prints a line of JSON for each key and window of a zone with the option usage, or of all
such zones: the requests that have passed, what these have cost, and the requests that the
limit has refused, in all instances that share the store. Without --from and --to, these
are all windows that are kept, and the one that runs.

A window is complete when it is over and the last of its responses has ended.
`,
		Example:           "  caddy rate-limit usage --from 48h\n  caddy rate-limit usage api --from 2026-12-01 --to 2026-12-02",
		ValidArgsFunction: completeKeys,
	}
	query := keyFlags(cmd)
	from := cmd.Flags().String("from", "", "The first window: a date, a time such as 2026-12-01T18:00:00Z, or how long ago, such as 48h")
	to := cmd.Flags().String("to", "", "The time that the last window begins before")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := make(url.Values)
		if len(args) > 1 || cmd.Flags().Changed("key-base64") {
			if len(args) == 0 {
				return errors.New("the zone of the key is missing: write 'caddy rate-limit usage <zone> --key-base64 ...'")
			}
			var err error
			if q, err = query(args[1:]); err != nil {
				return err
			}
		}
		for name, text := range map[string]string{"from": *from, "to": *to} {
			if text != "" {
				q.Set(name, timeAgo(text))
			}
		}
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		return e.usage(args[:min(1, len(args))], q)
	}
	return cmd
}

// timeAgo returns the time before a duration. Another text is a time already.
func timeAgo(text string) string {
	ago, err := caddy.ParseDuration(text)
	if err != nil {
		return text
	}
	return time.Now().Add(-ago).UTC().Format(time.RFC3339)
}

// usage prints a line for each sum of these zones, or of all zones that have any, page by page.
func (e *endpoint) usage(zones []string, query url.Values) error {
	if len(zones) == 0 {
		var all []adminapi.Zone
		if _, err := e.fetch(http.MethodGet, "zones", nil, nil, &all); err != nil {
			return err
		}
		for _, z := range all {
			if z.Usage != nil {
				zones = append(zones, z.Name)
			}
		}
		if len(zones) == 0 {
			return errors.New("no zone sums usage: give one the option usage, such as usage 1h")
		}
	}
	query.Set("n", "1000")
	lines := json.NewEncoder(e.out)
	lines.SetEscapeHTML(false)
	for _, zone := range zones {
		for query.Del("cursor"); ; {
			var page adminapi.UsagePage
			if _, err := e.fetch(http.MethodGet, zonePath(zone, "/usage"), query, nil, &page); err != nil {
				return fmt.Errorf("zone %s: %w", shellWord(zone), err)
			}
			for i := range page.Usage {
				if err := lines.Encode(&page.Usage[i]); err != nil {
					return err
				}
			}
			if page.Next == "" {
				break
			}
			query.Set("cursor", page.Next)
		}
	}
	return nil
}
