package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"
)

// adjacentFile is the config that commands of Caddy take if none is named.
const adjacentFile = "Caddyfile"

// loadConfig returns the config, as JSON, that the flags of a command name, for commands that ask no Caddy.
func loadConfig(cmd *cobra.Command) ([]byte, error) {
	file, _ := cmd.Flags().GetString("config")
	adapter, _ := cmd.Flags().GetString("adapter")
	if file == "" && adapter != "" {
		return nil, errors.New("--adapter needs the file that it adapts: name it with --config")
	}
	config, err := readConfig(file, adapter)
	if err == nil && len(config) == 0 {
		err = errors.New("there is no config: name the file with --config")
	}
	return config, err
}

// readConfig returns a config as JSON: that of the file, or else of the Caddyfile in the working directory, or
// nothing if there is none. What is no JSON is a Caddyfile, whatever its name. It logs nothing, because a log line
// looks like an error of the command.
func readConfig(file, adapter string) ([]byte, error) {
	read := os.ReadFile
	if file == "-" {
		read = func(string) ([]byte, error) { return io.ReadAll(os.Stdin) }
	}
	text, err := read(cmp.Or(file, adjacentFile))
	switch {
	case file == "" && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	if adapter == "" {
		if err := json.Unmarshal(text, new(any)); err == nil {
			return text, nil
		} else if strings.EqualFold(filepath.Ext(file), ".json") {
			return nil, fmt.Errorf("%s is not valid JSON: %w; if it is not JSON, name its adapter with --adapter", file, err)
		}
		adapter = "caddyfile"
	}
	known := caddyconfig.GetAdapter(adapter)
	if known == nil {
		return nil, fmt.Errorf("unknown config adapter %q", adapter)
	}
	name := cmp.Or(file, adjacentFile)
	config, _, err := known.Adapt(text, map[string]any{"filename": name})
	if err != nil {
		return nil, fmt.Errorf("adapting %s: %w", name, err)
	}
	return config, nil
}

// adminAddress returns the address of the admin endpoint: the one given, or that of the config in this file, or
// else of the Caddyfile in the working directory. If that Caddyfile cannot be adapted here, for example because its
// environment variables are those of a service, Caddy's default address is taken.
func adminAddress(address, file, adapter string) (string, error) {
	if address != "" {
		return cleanAddress(address)
	}
	var parsed struct {
		Admin caddy.AdminConfig `json:"admin"`
	}
	config, err := readConfig(file, adapter)
	if len(config) > 0 {
		err = json.Unmarshal(config, &parsed)
	}
	if err != nil && file != "" {
		return "", fmt.Errorf("finding the admin endpoint: %w", err)
	}
	switch {
	case parsed.Admin.Disabled:
		return "", errors.New("the config has the option admin off, so its Caddy has no admin endpoint to ask; name another with --address")
	case parsed.Admin.Listen != "":
		return parsed.Admin.Listen, nil
	}
	return caddy.DefaultAdminListen, nil
}

// cleanAddress returns an address as Caddy reads it: people also write URLs, and leave out the port.
func cleanAddress(address string) (string, error) {
	if host, ok := strings.CutPrefix(address, "http://"); ok {
		address = strings.TrimRight(host, "/")
	}
	parsed, err := caddy.ParseNetworkAddressWithDefaults(address, "tcp", adminPort)
	return parsed.String(), err
}

const adminPort = 2019
