package cli

import (
	"net/http"

	"github.com/spf13/cobra"
)

func banCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "ban <zone> [<key>...]",
		Short: "Refuses all that a key asks for",
		Long: `
Bans a key of a zone: everything that it asks for is refused and not counted, by all
Caddys that share the store and from the next request on, until 'caddy rate-limit
unban' or for as long as --for says. It takes the place of another override.

The zone must have the option overrides.
` + keyHelp,
		Example: "  caddy rate-limit ban clients 203.0.113.7 --for 1h --note 'scrapes prices'",
	}, http.MethodPut, "/key/ban", validityFlags, true)
}

func unbanCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "unban <zone> [<key>...]",
		Short: "Ends a ban",
		Long: `
Ends the ban of a key, whether an operator has banned it or the zone's option ban, and
forgets earlier bans and the refusals that count towards the next one. What the key
has used stays used: its limit may still refuse it. With Redis that holds for all
Caddys; where the zone has no overrides, another one may remember the ban for another
second (deny_cache).
` + keyHelp,
		Example: "  caddy rate-limit unban clients 203.0.113.7",
	}, http.MethodDelete, "/key/ban", nil, true)
}
