package cli

import (
	"net/http"

	"github.com/spf13/cobra"
)

func resetCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "reset <zone> [<key>...]",
		Short: "Lets a key start anew, as if it had never come",
		Long: `
Forgets what a key of a zone has used, and that it was refused or banned for that. An
override stays. With Redis that holds for all Caddys; another one that remembers a
refusal of this key does so for another second at most (deny_cache).

Where limits come out of placeholders there may be counters that this Caddy has not met.
Then there is a warning that says what to do.
` + keyHelp,
		Example: "  caddy rate-limit reset clients 203.0.113.7",
	}, http.MethodDelete, "/key", nil, false)
}
