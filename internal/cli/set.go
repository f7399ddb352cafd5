package cli

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func setCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set <zone> [<key>...] <limit>|--plan <plan>|--exempt|--clear",
		Short: "Gives a key a limit of its own, or exempts it",
		Long: `
Gives a key of a zone a limit of its own, in place of any other override. Write the limit
as in a plan, such as 500/1m or 'token_bucket 10/1s burst 50', or as a number of events
in the zone's window. --plan gives the key the limit that this plan has now, --exempt
lifts the limit, and --clear clears the override, even if it is a ban.

From the next request on, an override holds for all instances that share the store, until
it is cleared, or for the time that --for gives; with the store memory, it holds in that
process only, until it ends. What the key has used so far still counts.

The zone must have the option overrides.
` + keyHelp,
		Example: "  caddy rate-limit set clients 203.0.113.7 500/1m --for 2h\n  caddy rate-limit set clients 203.0.113.7 --exempt\n" +
			"  caddy rate-limit set clients 203.0.113.7 --clear",
		Args:              needsZone,
		ValidArgsFunction: completeZones,
	}
	query := keyFlags(cmd)
	body := validityFlags(cmd)
	flags := cmd.Flags()
	plan := flags.String("plan", "", "The plan whose limit the key gets")
	exempt := flags.Bool("exempt", false, "Exempt the key from the limit")
	clear := flags.Bool("clear", false, "Clear the override")
	_ = cmd.RegisterFlagCompletionFunc("plan", completePlans)
	cmd.RunE = onFleet(func(f *fleet, args []string) error {
		if err := errors.Join(checkExclusive(cmd, "plan", "exempt", "clear"), checkExclusive(cmd, "clear", "for"), checkExclusive(cmd, "clear", "note")); err != nil {
			return err
		}
		zone, key, request := args[0], args[1:], body()
		switch {
		case *clear:
			request = nil
		case *exempt:
			request["exempt"] = true
		case flags.Changed("plan"):
			request["plan"] = *plan
		case len(key) == 0:
			return errors.New("the limit is missing: give one such as 500/1m as the last argument, or --plan, --exempt or --clear")
		default:
			request["limit"], key = key[len(key)-1], key[:len(key)-1]
		}
		q, err := query(key)
		if err != nil {
			return err
		}
		if request == nil {
			return f.changeKey(http.MethodDelete, zone, "/key/override", q, nil, true)
		}
		err = f.changeKey(http.MethodPut, zone, "/key/override", q, request, true)
		if invalid := new(apiError); request["limit"] != nil && errors.As(err, &invalid) && invalid.status == "400" {
			return fmt.Errorf("%w (the last argument, %s, is the limit)", err, shell.Word(fmt.Sprint(request["limit"])))
		}
		return err
	})
	return cmd
}
