package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// adminAddress returns the address of the admin endpoint: the one given, or that of the config in this file, or
// else of the Caddyfile in the working directory. If that Caddyfile cannot be adapted here, for example because its
// environment variables are those of a service, Caddy's default address is taken.
func adminAddress(address, file, adapter string) (string, error) {
	if address != "" {
		return cleanAddress(address), nil
	}
	config, err := readConfig(file, adapter)
	if err != nil && file != "" {
		return "", fmt.Errorf("finding the admin endpoint: %w", err)
	}
	var parsed struct {
		Admin caddy.AdminConfig `json:"admin"`
	}
	if err := json.Unmarshal(config, &parsed); len(config) > 0 && err != nil && file != "" {
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

const adminPort = "2019"

// cleanAddress returns an address as Caddy reads it: people also write URLs, and leave out the port.
func cleanAddress(address string) string {
	if strings.HasPrefix(address, "unix") {
		return address
	}
	address = strings.TrimRight(strings.TrimPrefix(address, "http://"), "/")
	if strings.Contains(address, "/") {
		return address // with a network, such as tcp/localhost:2019
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return net.JoinHostPort(strings.Trim(address, "[]"), adminPort)
	}
	return address
}
