package cli

import (
	"net/http"

	"github.com/spf13/cobra"
)

func banCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "ban <zone> [<key>...]",
		Short: "Refuses all requests of a key",
		Long: `
Bans a key of a zone: all of its requests are refused and not counted, by all instances
that share the store, from the next request on, until 'caddy rate-limit unban' or for
as long as --for says. A ban replaces another override.

The zone must have the option overrides.
` + keyHelp,
		Example: "  caddy rate-limit ban clients 203.0.113.7 --for 1h --note 'scrapes prices'",
	}, http.MethodPut, "/key/ban", validityFlags, true)
}

func unbanCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "unban <zone> [<key>...]",
		Short: "Ends the ban of a key",
		Long: `
Ends the ban of a key, by an operator or by the zone's option ban, and forgets earlier
bans and the refusals that count towards the next one. What the key has used stays used,
so its limit may still refuse it. With Redis the ban ends for all instances. If the zone has
no overrides, another instance may still refuse the key from its deny cache, for at most a
second (deny_cache).
` + keyHelp,
		Example: "  caddy rate-limit unban clients 203.0.113.7",
	}, http.MethodDelete, "/key/ban", nil, true)
}
