package cli

import (
	"net/http"

	"github.com/spf13/cobra"
)

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
