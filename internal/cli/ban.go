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
Bans a key of a zone, or a network such as 203.0.113.0/24 where keys are addresses: from
the next request on, all instances that share the store refuse its requests without
counting them, until 'caddy rate-limit unban', or for the time that --for gives. With the
store memory, it holds in that process only, until it ends. A ban replaces any other
override.

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
bans and the refusals that count towards the next one. What the key has used so far still
counts, so its limit may still refuse it. With Redis the ban ends for all instances. If the zone has
no overrides, another instance may still refuse the key from its deny cache, for at most a
second (deny_cache).
` + keyHelp,
		Example: "  caddy rate-limit unban clients 203.0.113.7",
	}, http.MethodDelete, "/key/ban", nil, true)
}

func resetCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "reset <zone> [<key>...]",
		Short: "Forgets what a key has used",
		Long: `
Forgets what a key of a zone has used, its refusals, and its bans by the zone. An override
stays. With Redis the key is reset for all instances. Another instance may still refuse it
from its deny cache, for at most a second (deny_cache).

If limits come from placeholders, this instance may not know all counters of the key. Then
a warning says what to do.
` + keyHelp,
		Example: "  caddy rate-limit reset clients 203.0.113.7",
	}, http.MethodDelete, "/key", nil, false)
}
