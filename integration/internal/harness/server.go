// Package harness is what the integration tests share. It runs real Caddy processes with this module, and sends
// them requests over HTTP as any client would.
//
// Each process belongs to one test and ends with it. All traffic stays on 127.0.0.1.
package harness

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// Server is a running Caddy.
type Server struct {
	T       *testing.T
	Dir     string   // short, because the path of the admin socket is limited
	Address string   // the address of its site, host:port
	More    []string // the addresses of further sites, on the sockets fd/4, fd/5 and so on
	Process *childprocess.Process

	logged int64 // how much was in the log when this test began
}

// Caddyfile is a config with one site, on the socket that the process inherits. The options and
// the body of the site are lines of a Caddyfile.
func Caddyfile(options, site string) string {
	return `{
	admin unix/{$ADMIN}
	persist_config off
	auto_https off
	` + options + `
}
:80 {
	bind fd/3
	` + site + `
}
`
}

// StartCaddy runs a Caddy with a config until the test ends. The config can use the variables,
// each of the form "NAME=value".
//
// The site's socket is opened here and inherited, so no port can be lost to another process. A
// reload keeps the socket, too: otherwise Caddy opens a second one beside it, and the kernel
// resets the connections that wait on the old one when it closes.
func StartCaddy(t *testing.T, config string, variables ...string) *Server {
	t.Helper()
	return StartSites(t, Binary(t), 1, config, variables...)
}

// StartSites is StartCaddy with another binary, or with a number of sockets.
func StartSites(t *testing.T, path string, sockets int, config string, variables ...string) *Server {
	t.Helper()
	s := &Server{T: t, Dir: redistest.ShortDir(t)}
	s.launch(path, sockets, config, variables...)
	t.Cleanup(s.end)
	s.awaitConfig()
	return s
}

// launch starts the process.
func (s *Server) launch(path string, sockets int, config string, variables ...string) {
	t := s.T
	t.Helper()
	configFile := filepath.Join(s.Dir, "Caddyfile")
	if err := os.WriteFile(configFile, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	var files []*os.File
	for i := range sockets {
		address, socket := listen(t)
		defer socket.Close()
		if files = append(files, socket); i == 0 {
			s.Address = address
		} else {
			s.More = append(s.More, address)
		}
	}

	cmd := exec.Command(path, "run", "--config", configFile, "--adapter", "caddyfile")
	cmd.Dir = s.Dir
	cmd.Env = append(Environment(s.Dir), variables...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = files
	if s.Process, err = childprocess.Start(cmd); err != nil {
		t.Fatalf("starting Caddy: %v", err)
	}
}

// awaitConfig waits until Caddy runs with its first config.
func (s *Server) awaitConfig() {
	s.T.Helper()
	patient.Until(s.T, "Caddy to be ready", func() bool {
		if s.Process.Ended() {
			s.T.Fatalf("Caddy ended: %v\n%s", s.Process.Err(), s.Log())
		}
		config, err := s.Admin("GET", "/config/", "", "")
		return err == nil && config != "null\n"
	})
}

// listen opens a socket for a child process. Its own handle on it is closed.
func listen(t *testing.T) (address string, socket *os.File) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err = listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String(), socket
}

// Environment keeps a Caddy away from the files of the user that runs the tests.
func Environment(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + dir,
		"XDG_DATA_HOME=" + dir,
		"XDG_CONFIG_HOME=" + dir,
		"ADMIN=" + filepath.Join(dir, "admin"),
		"TZ=" + os.Getenv("TZ"),
		"GORACE=" + os.Getenv("GORACE"),
		"GOGC=" + os.Getenv("GOGC"),
	}
}

// URL is the address of a path of its site.
func (s *Server) URL(path string) string { return "http://" + s.Address + path }

func (s *Server) logFile() string { return filepath.Join(s.Dir, "log") }

// Log returns everything that Caddy has logged during the test.
func (s *Server) Log() []byte {
	s.T.Helper()
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		s.T.Error(err)
	}
	return text[min(s.logged, int64(len(text))):]
}

// Stop asks Caddy to end, which must succeed without a complaint.
func (s *Server) Stop() {
	s.T.Helper()
	if _, err := s.Admin("POST", "/stop", "", ""); err != nil {
		s.T.Errorf("stopping Caddy: %v", err)
	}
	patient.Until(s.T, "Caddy to stop", s.Process.Ended)
	if s.Process.Err() != nil {
		s.T.Errorf("Caddy stopped with %v", s.Process.Err())
	}
}

// end kills Caddy, and looks for signs of failure in its log.
func (s *Server) end() {
	if err := s.Process.Kill(); err != nil {
		s.T.Errorf("killing Caddy: %v", err)
	}
	s.checkLog()
}

// checkLog looks for signs of failure in Caddy's log that every test wants to know of.
func (s *Server) checkLog() {
	log := withoutCaddysRaces(s.Log())
	for _, sign := range []string{"WARNING: DATA RACE", "panic", "fatal error: "} {
		if at := bytes.Index(log, []byte(sign)); at >= 0 {
			s.T.Errorf("Caddy's log says %q:\n%s", sign, log[at:min(len(log), at+8192)])
			return
		}
	}
	if s.T.Failed() {
		s.T.Logf("end of Caddy's log:\n%s", log[max(0, len(log)-4096):])
	}
}

// caddysRaces are the functions in which Caddy 2.11 has races of its own: when the grace period is over, reverse_proxy is cleaned up
// while it still begins to serve a request; and at the end of a body it sets the trailers while net/http may write the header.
var caddysRaces = regexp.MustCompile(`reverseproxy\.\(\*Handler\)\.cleanupConnections\(\)` +
	`|mapclear\(\)\n.*\n.*reverseproxy\.\(\*requestBodyWithTrailers\)\.Read\(\)\n`)

// withoutCaddysRaces returns a log without them.
func withoutCaddysRaces(log []byte) []byte {
	const fence = "==================\n"
	blocks := bytes.Split(log, []byte(fence))
	return bytes.Join(slices.DeleteFunc(blocks, func(block []byte) bool {
		return bytes.HasPrefix(block, []byte("WARNING: DATA RACE")) && caddysRaces.Match(block)
	}), []byte(fence))
}
