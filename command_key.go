package caddyratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// keyHelp is what the commands that take a key say of it.
const keyHelp = `
The key is what the zone tells clients apart by: paste it from 'caddy rate-limit
top', or write it as a request would bring it. Where the zone makes keys of several
placeholders, give the value of each as an argument of its own. A zone without a
key takes none. --key-base64 takes a key of any bytes; after -- a key may begin
with a hyphen.
`

func getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get <zone> [<key>...]",
		Short: "Shows what a key has used, and when it gets more",
		Long: `
Shows what a key of a zone has used, and if it is refused for how long. This charges
nothing.
` + keyHelp,
		Example:           "  caddy rate-limit get clients 203.0.113.7",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeZones,
	}
	query := keyFlags(cmd)
	plan := cmd.Flags().String("plan", "", "The plan whose limit is meant, if not that of requests that name none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		q, err := query(args[1:])
		if err != nil {
			return err
		}
		if *plan != "" {
			q.Set("plan", *plan)
		}
		return e.get(args[0], q)
	}
	return cmd
}

func (e *endpoint) get(zone string, query url.Values) error {
	var k keyAnswer
	if done, err := e.read(zonePath(zone, "/key"), query, &k); done || err != nil {
		return err
	}
	state := "passes"
	if k.Refused {
		state = "refused"
	}
	rows := [][]string{
		{"zone", shellWord(k.Zone)},
		{"key", k.shell()},
		{"limit", k.Limit},
		{"state", state},
		{"used", fmt.Sprintf("%d of %d", k.Used, k.Quota)},
		{"remaining", strconv.FormatInt(k.Remaining, 10)},
	}
	if k.NextAfter > 0 {
		rows = append(rows, []string{"more in", wait(k.NextAfter)})
	}
	if k.ResetAfter > 0 {
		rows = append(rows, []string{"all in", wait(k.ResetAfter)})
	}
	return e.table(rows)
}

func resetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset <zone> [<key>...]",
		Short: "Lets a key start anew, as if it had never come",
		Long: `
Forgets what a key of a zone has used. With Redis that holds for all Caddys; one that
remembers a refusal of this key does so for another second at most (deny_cache).
` + keyHelp,
		Example:           "  caddy rate-limit reset clients 203.0.113.7",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeZones,
	}
	query := keyFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		q, err := query(args[1:])
		if err != nil {
			return err
		}
		response, err := e.call(http.MethodDelete, zonePath(args[0], "/key"), q)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	return cmd
}

// keyFlags adds the flags that say which key, and returns what makes a query of them and
// of arguments.
func keyFlags(cmd *cobra.Command) func(args []string) (url.Values, error) {
	encoded := cmd.Flags().String("key-base64", "", "The key in base64")
	return func(args []string) (url.Values, error) {
		isEncoded := cmd.Flags().Changed("key-base64")
		switch {
		case isEncoded && len(args) > 0:
			return nil, errors.New("give the key as an argument or with --key-base64, not both")
		case isEncoded:
			return url.Values{"key_base64": {*encoded}}, nil
		case len(args) == 1:
			return url.Values{"key": args}, nil
		}
		return url.Values{"part": args}, nil
	}
}
