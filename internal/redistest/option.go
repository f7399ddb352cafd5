package redistest

import "strconv"

// Option changes how Start starts a server.
type Option func(*settings)

type settings struct {
	password    string
	users       [][]string // each the words of one "user" line
	tls         bool
	clientCerts bool
	certs       certs
	extra       []string
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

// WithArgs passes arguments on to redis-server, such as "--maxmemory", "2mb".
// They come last, so they win over those of this package. Passwords belong in
// WithPassword, where the admin client learns them.
func WithArgs(args ...string) Option {
	return func(s *settings) { s.extra = append(s.extra, args...) }
}

// arguments returns the command line of the server.
func (s *Server) arguments() []string {
	args := []string{
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(s.port),
		"--unixsocket", s.Socket(),
		"--unixsocketperm", "700",
		"--dir", s.dir,
		"--daemonize", "no",
		"--save", "",
		"--appendonly", "no",
	}
	set := s.settings
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
			"--tls-ca-cert-file", set.certs.client.CA,
			"--tls-cert-file", set.certs.serverCert,
			"--tls-key-file", set.certs.serverKey,
			"--tls-auth-clients", authClients,
		)
	}
	return append(args, set.extra...)
}
