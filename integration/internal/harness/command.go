package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// RateLimit runs caddy rate-limit against the server.
func (s *Server) RateLimit(args ...string) (string, error) {
	args = append([]string{"rate-limit", "--address", "unix/" + filepath.Join(s.Dir, "admin")}, args...)
	output, complaint, err := s.run(CommandBinary(s.T), args...)
	return output + complaint, err
}

// Shell runs a line in bash. There $CADDY is the binary and $ADMIN is the endpoint.
func (s *Server) Shell(line string) (string, error) {
	s.T.Helper()
	output, complaint, err := s.run("bash", "-c", line)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint)
	}
	return output, err
}

func (s *Server) run(program string, args ...string) (output, complaint string, err error) {
	ctx, cancel := context.WithTimeout(s.T.Context(), patient.Patience)
	defer cancel()
	var out, wrong strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = s.Dir, append(Environment(s.Dir), "CADDY="+CommandBinary(s.T))
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err = cmd.Run()
	return out.String(), wrong.String(), err
}

// Finding is a finding of doctor, as a program reads it.
type Finding struct {
	Level, Check, Found, Fix string
}

// Doctor runs the command and returns its exit code, and what it found if it prints JSON.
func (s *Server) Doctor(args ...string) (code int, output string, findings []Finding) {
	s.T.Helper()
	output, err := s.RateLimit(append([]string{"doctor"}, args...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		s.T.Fatal(err)
	}
	var d struct{ Findings []Finding }
	_ = json.Unmarshal([]byte(output), &d) // else it is what a person reads
	return code, output, d.Findings
}

// NeedProgram skips a test if a command is missing, or fails the test if the command is required.
func NeedProgram(t *testing.T, command, required string) {
	t.Helper()
	if _, err := exec.LookPath(command); err == nil {
		return
	}
	if os.Getenv(required) != "" {
		t.Fatalf("%s is not on PATH, and %s is set", command, required)
	}
	t.Skipf("SKIPPED: %s is not on PATH; with %s=1 that is a failure", command, required)
}

// ReadPage reads a file that must be there.
func ReadPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Localize changes a config of the docs so that it runs here: its sites are on the socket that the
// process inherits, and its upstream is the test's. It refuses requests when the store does not
// answer in time, which would otherwise hide wrong counts.
func Localize(config, store, upstream string) string {
	config = regexp.MustCompile(`(?m)^([a-z.]+\.example\.com|example\.com) \{$`).ReplaceAllStringFunc(config, func(site string) string {
		if host, _, _ := strings.Cut(site, " "); strings.Contains(config, "import ") {
			return "http://" + host + " {\nbind fd/3"
		}
		return ":80 {\nbind fd/3"
	})
	config = strings.ReplaceAll(config, "localhost:9000", upstream)
	config = strings.ReplaceAll(config, "on_store_error allow", "on_store_error deny")
	options := "{\nadmin unix/{$ADMIN}\npersist_config off\nauto_https off\nrate_limit {\n" + store + "}\n"
	sites, hasOptions := strings.CutPrefix(config, "{\n")
	return options + map[bool]string{false: "}\n"}[hasOptions] + sites
}
