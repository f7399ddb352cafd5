package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// RateLimit runs caddy rate-limit against the server.
func (s *Server) RateLimit(args ...string) (string, error) {
	args = append([]string{"rate-limit", "--address", "unix/" + filepath.Join(s.Dir, "admin")}, args...)
	cmd := exec.CommandContext(s.T.Context(), CommandBinary(s.T), args...)
	cmd.Dir, cmd.Env = s.Dir, Environment(s.Dir)
	var output, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaint
	err := cmd.Run()
	return output.String() + complaint.String(), err
}

// Shell runs a line in bash. There $CADDY is the binary and $ADMIN is the endpoint.
func (s *Server) Shell(line string) (string, error) {
	s.T.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		s.T.Fatal("no bash: make needs it too")
	}
	ctx, cancel := context.WithTimeout(s.T.Context(), patient.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", line)
	cmd.Dir, cmd.Env = s.Dir, append(Environment(s.Dir), "CADDY="+CommandBinary(s.T))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	output, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint.String())
	}
	return string(output), err
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
