package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

// adminAddress returns the address of the admin endpoint that the flags name.
func adminAddress(address, file, adapter string) (string, error) {
	if address != "" {
		return cleanAddress(address), nil
	}
	var config []byte
	if file != "" {
		var err error
		if config, _, _, err = caddycmd.LoadConfig(file, adapter); err != nil {
			return "", fmt.Errorf("finding the admin endpoint: %w", err)
		}
		var parsed struct {
			Admin struct {
				Disabled bool `json:"disabled"`
			} `json:"admin"`
		}
		if err := json.Unmarshal(config, &parsed); err == nil && parsed.Admin.Disabled {
			return "", errors.New("the config has the option admin off, so its Caddy has no admin endpoint to ask")
		}
	}
	address, err := caddycmd.DetermineAdminAPIAddress("", config, file, adapter)
	if err != nil {
		return "", fmt.Errorf("finding the admin endpoint: %w", err)
	}
	return address, nil
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
