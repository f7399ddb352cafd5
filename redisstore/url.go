package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

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
