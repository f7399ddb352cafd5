package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// completeAddress checks an address and writes it as host:port, with this port if it has
// none, or unix/path.
func completeAddress(address, defaultPort string) (string, error) {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		if path == "" {
			return "", fmt.Errorf("address %q has no path: write unix//run/redis.sock", address)
		}
		return address, nil
	}
	switch {
	case address == "":
		return net.JoinHostPort(defaultHost, defaultPort), nil
	case strings.Contains(address, "@"), strings.Contains(address, "://"):
		return "", errors.New("address (not shown, for it may hold a password) must be host:port or unix//path: " +
			"use url for redis://user:password@host:port/db")
	case strings.HasPrefix(address, "/"):
		return "", fmt.Errorf("address %q must be host:port or unix//path: write unix/%s", address, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		// Perhaps just the port is missing.
		bare := address
		if strings.HasPrefix(bare, "[") && strings.HasSuffix(bare, "]") {
			bare = bare[1 : len(bare)-1]
		}
		host, port, err = net.SplitHostPort(net.JoinHostPort(bare, defaultPort))
	}
	if _, ipErr := netip.ParseAddr(host); ipErr != nil && strings.Contains(host, ":") {
		host = "" // neither an IPv6 address nor a name
	}
	if err != nil || host == "" || strings.ContainsAny(host, "/ {}[]") || !isPort(port) {
		return "", fmt.Errorf("address %q must be host:port or unix//path", address)
	}
	return net.JoinHostPort(host, port), nil
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= 65535
}
