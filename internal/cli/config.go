package cli

import (
	"errors"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// loadConfig returns the config, as JSON, that the flags of a command name, for commands that ask no Caddy.
func loadConfig(cmd *cobra.Command) ([]byte, error) {
	file, _ := cmd.Flags().GetString("config")
	adapter, _ := cmd.Flags().GetString("adapter")
	config, _, _, err := caddycmd.LoadConfig(file, adapter)
	if err == nil && len(config) == 0 {
		err = errors.New("there is no config: name the file with --config")
	}
	return config, err
}
