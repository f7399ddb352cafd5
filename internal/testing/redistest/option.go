package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// Option changes how Start starts a server.
type Option func(*settings)

type settings struct {
	password    string
	users       [][]string // each the words of one "user" line
	tls         bool
	clientCerts bool
	certs       TLSFiles
	extra       []string
	host        string   // empty: 127.0.0.1
	sentinel    []string // it is a Sentinel, with these lines of configuration
}

// WithPassword asks the default user for a password (requirepass). The admin
// client knows it.
func WithPassword(password string) Option {
	return func(s *settings) { s.password = password }
}

// WithUser adds an ACL user with a password and ACL rules such as "~rl:*" and
// "+evalsha". Without rules the user may log in and do nothing. The default
// user keeps all its rights.
func WithUser(name, password string, rules ...string) Option {
	return func(s *settings) {
		words := append([]string{name, "on", ">" + password}, rules...)
		s.users = append(s.users, words)
	}
}

// WithTLS opens a TLS port beside the plain one. Its certificate is for
// 127.0.0.1 and "redis.test". With clientCerts the port refuses clients that
// show no certificate of the CA.
func WithTLS(clientCerts bool) Option {
	return func(s *settings) { s.tls, s.clientCerts = true, clientCerts }
}

// WithHosts has servers listen on other loopback addresses than 127.0.0.1, such as "::1": each server on
// the next one.
func WithHosts(hosts ...string) Option {
	var next atomic.Int64
	return func(s *settings) {
		s.host = hosts[int(next.Add(1))%len(hosts)]
		s.extra = append(s.extra, "--bind-source-addr", s.host) // by which others know it
	}
}

// WithPersistence makes the server come back from Kill and Restart with everything that it has
// answered. By default Redis delays writing while the disk is busy, and would lose data.
func WithPersistence() Option { return WithArgs("--appendonly", "yes", "--appendfsync", "always") }

// WithArgs passes arguments on to redis-server, such as "--maxmemory", "2mb".
// They come last, so they win over those of this package. Passwords belong in
// WithPassword, where the admin client learns them.
func WithArgs(args ...string) Option {
	return func(s *settings) { s.extra = append(s.extra, args...) }
}

// arguments returns the command line of the server.
func (s *Server) arguments() []string {
	args := []string{
		"--bind", s.host(),
		"--port", strconv.Itoa(s.port),
		"--unixsocket", s.Socket(),
		"--unixsocketperm", "700",
		"--dir", s.dir,
		"--daemonize", "no",
	}
	set := s.settings
	if set.sentinel == nil {
		args = append(args, "--save", "", "--appendonly", "no")
	}
	if set.password != "" {
		args = append(args, "--requirepass", set.password)
	}
	for _, words := range set.users {
		args = append(append(args, "--user"), words...)
	}
	if set.tls {
		authClients := "no"
		if set.clientCerts {
			authClients = "yes"
		}
		args = append(args,
			"--tls-port", strconv.Itoa(s.tlsPort),
			"--tls-ca-cert-file", set.certs.CA,
			"--tls-cert-file", set.certs.Cert,
			"--tls-key-file", set.certs.Key,
			"--tls-auth-clients", authClients,
		)
	}
	return append(args, set.extra...)
}

// command returns what follows the program's name on the command line. A Sentinel keeps
// in its configuration file what it learns, so it gets one, once.
func (s *Server) command() ([]string, error) {
	if s.settings.sentinel == nil {
		return s.arguments(), nil
	}
	path := filepath.Join(s.dir, "sentinel.conf")
	if _, err := os.Stat(path); err == nil {
		return []string{path, "--sentinel"}, nil
	}
	var text strings.Builder
	for _, word := range s.arguments() {
		if option, ok := strings.CutPrefix(word, "--"); ok {
			text.WriteString("\n" + option)
		} else {
			fmt.Fprintf(&text, " %q", word)
		}
	}
	text.WriteString("\n" + strings.Join(s.settings.sentinel, "\n") + "\n")
	return []string{path, "--sentinel"}, os.WriteFile(path, []byte(text.String()), 0o600)
}
