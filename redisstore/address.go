package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// completeAddress checks an address and writes it as host:port, or unix/path. An address without
// a port gets the default one.
func completeAddress(address, defaultPort string) (string, error) {
	if path, ok := strings.CutPrefix(address, node.UnixPrefix); ok {
		if path == "" {
			return "", fmt.Errorf("address %q has no path: write unix//run/redis.sock", address)
		}
		return address, nil
	}
	switch {
	case address == "":
		return net.JoinHostPort(defaultHost, defaultPort), nil
	case strings.Contains(address, "@"), strings.Contains(address, "://"):
		return "", errors.New("address (not shown because it may hold a password) must be host:port or unix//path: " +
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

// completeMode sets the mode if it is empty, checks that the other options go with it, and
// completes the addresses.
func (o *Options) completeMode() error {
	addresses := slices.Clone(o.Addresses) // the caller's stay as they are
	if o.Address != "" || len(addresses) == 0 {
		addresses = append(addresses, o.Address)
	}
	if o.Mode == "" {
		switch {
		case o.MasterName != "":
			o.Mode = ModeSentinel
		case len(addresses) > 1:
			return fmt.Errorf("%d addresses need a mode: write mode %s (with master_name) if they are Sentinels, or mode %s if they are nodes of a Cluster",
				len(addresses), ModeSentinel, ModeCluster)
		default:
			o.Mode = ModeStandalone
		}
	}
	port := defaultPort
	switch o.Mode {
	case ModeStandalone:
		if len(addresses) > 1 {
			return fmt.Errorf("mode %s takes one address, got %d", o.Mode, len(addresses))
		}
	case ModeSentinel:
		port = sentinelPort
		if o.MasterName == "" {
			return fmt.Errorf("mode %s needs master_name: what the Sentinels call the master", o.Mode)
		}
	case ModeCluster:
		if o.DB != 0 {
			return fmt.Errorf("db must be 0 in mode %s, got %d: a Cluster has no other", o.Mode, o.DB)
		}
	default:
		return fmt.Errorf("mode must be %s, %s or %s, got %q", ModeStandalone, ModeSentinel, ModeCluster, o.Mode)
	}
	if o.Mode != ModeSentinel {
		switch {
		case o.MasterName != "":
			return fmt.Errorf("master_name is for mode %s, not %s", ModeSentinel, o.Mode)
		case o.SentinelUsername != "" || o.SentinelPassword != "":
			return fmt.Errorf("sentinel_username and sentinel_password are for mode %s, not %s", ModeSentinel, o.Mode)
		}
	}
	for i := range addresses {
		var err error
		if addresses[i], err = completeAddress(addresses[i], port); err != nil {
			return err
		}
		if o.Mode != ModeStandalone && strings.HasPrefix(addresses[i], node.UnixPrefix) {
			return fmt.Errorf("address %q: mode %s is for TCP, write host:port", addresses[i], o.Mode)
		}
	}
	if o.Mode == ModeStandalone {
		o.Address, o.Addresses = addresses[0], nil
		return nil
	}
	slices.Sort(addresses)
	o.Address, o.Addresses = "", slices.Compact(addresses)
	return nil
}

// Where names the server or servers of completed options in errors.
func (o *Options) Where() string {
	if o.Mode == ModeStandalone {
		return o.Address
	}
	return o.Mode + " " + strings.Join(o.Addresses, " ")
}

// useURL turns the URL into other options. Its errors show no part of the URL but the
// names of parameters, because any other part can be a password that was not written as it
// should be.
func (o *Options) useURL() error {
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"address", o.Address != "" || len(o.Addresses) > 0},
		{"username", o.Username != ""},
		{"password", o.Password != ""},
		{"db", o.DB != 0},
	} {
		if other.given {
			return fmt.Errorf("url and %s exclude each other", other.name)
		}
	}
	if err := o.parseURL(); err != nil {
		return fmt.Errorf("url (not shown because it may hold a password): %w", err)
	}
	o.URL = ""
	return nil
}

func (o *Options) parseURL() error {
	scheme, rest, found := strings.Cut(o.URL, "://")
	if !found || scheme != "redis" && scheme != "rediss" && scheme != "unix" {
		return errors.New("the scheme must be redis, rediss (for TLS) or unix: write redis://user:password@host:port/db")
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && strings.Contains(rest[i:], "@") {
		return errors.New("there is a / ? or # before the @: percent-encode special characters of the password")
	}
	u, err := url.Parse(o.URL)
	if err != nil && strings.HasPrefix(errors.Unwrap(err).Error(), "invalid port") {
		return errWrongPort
	}
	if err != nil || u.Fragment != "" {
		return errors.New("it does not parse: write redis://user:password@host:port/db, rediss:// for TLS, or " +
			"unix://user:password@/path?db=0, with special characters of the password percent-encoded")
	}
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if o.Username != "" && o.Password == "" {
		return errors.New("the user needs a password: write redis://user:password@host, or redis://:password@host")
	}
	if err := o.parseDB(u); err != nil {
		return err
	}
	if scheme == "unix" {
		if u.Host != "" || u.Path == "" {
			return errors.New("it must name the path of a socket: write unix:///run/redis.sock")
		}
		o.Address = node.UnixPrefix + u.Path
		return nil
	}
	port := cmp.Or(u.Port(), defaultPort)
	if !isPort(port) {
		return errWrongPort
	}
	o.Address = net.JoinHostPort(cmp.Or(u.Hostname(), defaultHost), port)
	if scheme == "rediss" && o.TLS == nil {
		o.TLS = new(TLS)
	}
	return nil
}

var errWrongPort = errors.New("the port must be a number from 1 to 65535")

// parseDB reads the number of the database, from the only parameter there may be or from the
// path.
func (o *Options) parseDB(u *url.URL) error {
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the parameters after the ? do not parse")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if option, ok := insteadOf[name]; ok {
			return fmt.Errorf("parameter %q is not supported: use the option %s", name, option)
		}
		if name != "db" {
			return fmt.Errorf("parameter %q is not supported: only db is", name)
		}
	}
	given := params["db"]
	if path := strings.Trim(u.Path, "/"); path != "" && u.Scheme != "unix" {
		given = append(given, path)
	}
	switch len(given) {
	case 0:
		return nil
	case 1:
		if o.DB, err = strconv.Atoi(given[0]); err == nil && o.DB >= 0 {
			return nil
		}
		return errors.New("the db must be a whole number of at least 0, as in redis://host:port/0")
	}
	return errors.New("the db is given more than once")
}

// insteadOf are the options for parameters that other clients take.
var insteadOf = map[string]string{
	"pool_size":     "pool_size",
	"dial_timeout":  "timeout",
	"read_timeout":  "timeout",
	"write_timeout": "timeout",
	"pool_timeout":  "timeout",
	"skip_verify":   "tls",
}
