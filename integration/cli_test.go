package integration_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
)

// rateLimit runs caddy rate-limit against the server.
func (s *server) rateLimit(args ...string) (string, error) {
	args = append([]string{"rate-limit", "--address", "unix/" + filepath.Join(s.dir, "admin")}, args...)
	cmd := exec.CommandContext(s.t.Context(), binary(s.t), args...)
	cmd.Dir, cmd.Env = s.dir, environment(s.dir)
	var output, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaint
	err := cmd.Run()
	return output.String() + complaint.String(), err
}

// TestCommandKeys: keys of any bytes can be given, and what `top` shows of them can be
// pasted into the next command by way of a shell.
func TestCommandKeys(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	eachStore(t, func(t *testing.T, store string) {
		s := startCaddy(t, byQuery(store))
		client := newClient(t, "")
		for _, key := range awkwardKeys {
			s.admitted(client, 3, withKey(key))
		}
		output, err := s.rateLimit("top", "odd / zone", "--refused", "-n", "100")
		lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
		if err != nil || len(lines) != len(awkwardKeys)+1 {
			t.Fatalf("%v, %d lines for %d keys:\n%s", err, len(lines), len(awkwardKeys), output)
		}
		column := strings.Index(lines[0], "KEY")
		seen := make(map[string]bool)
		for _, line := range lines[1:] {
			cmd := exec.CommandContext(t.Context(), shell, "-c",
				`"$CADDY" rate-limit get --json --address "unix/$ADMIN" 'odd / zone' `+line[column:])
			cmd.Dir, cmd.Env = s.dir, append(environment(s.dir), "CADDY="+binary(t))
			text, err := cmd.Output()
			var k keyState
			if err == nil {
				err = json.Unmarshal(text, &k)
			}
			if err != nil || k.Used != 2 || !k.Refused {
				t.Errorf("pasted %s: %v, %s", line[column:], err, text)
			}
			for _, key := range awkwardKeys {
				if k.is(key) {
					seen[key] = true
				}
			}
		}
		for _, key := range awkwardKeys {
			if !seen[key] {
				t.Errorf("key %q cannot be pasted", key)
			}
			arguments := []string{"reset", "odd / zone", "--", key}
			if strings.Contains(key, "\x00") {
				arguments = []string{"reset", "odd / zone", "--key-base64", base64.StdEncoding.EncodeToString([]byte(key))}
			}
			if output, err := s.rateLimit(arguments...); err != nil || output != "" {
				t.Errorf("resetting %q: %v %s", key, err, output)
			}
			if got := s.admitted(client, 1, withKey(key)); got != 1 {
				t.Errorf("key %q is refused after the reset", key)
			}
		}
	})
}

// TestCommands: what each shows, and how they fail.
func TestCommands(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	s := startCaddy(t, byQuery(redis(redisServer.Addr())))
	s.admitted(newClient(t, ""), 5, "/?k=a")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"zones", []string{"'odd / zone'", "sliding_window_log 2/1h", "{http.request.uri.query.k}", "redis " + redisServer.Addr(), "  2  ", "  3  "}},
		{"zones --json", []string{`"allowed": 2`, `"refused": 3`, `"max_events":`}},
		{"zones odd+/+zone", []string{"on_store_error", "deny", "refused", `defined as      {"key":"{http.request.uri.query.k}"`}},
		{"top", []string{"5         3        a"}},
		{"get odd+/+zone a", []string{"refused", "2 of 2", "more in"}},
		{"stores", []string{"redis " + redisServer.Addr(), "yes", "closed"}},
		{"stores --json", []string{`"answers": true`, `"instances": 1`}},
		{"", []string{"Available Commands", "stores", "watch"}},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "+", " ")
		}
		output, err := s.rateLimit(args...)
		for _, want := range c.want {
			if err != nil || !strings.Contains(output, want) {
				t.Errorf("%s: %v, want %q in\n%s", c.args, err, want, output)
			}
		}
	}
	redisServer.Kill()
	for _, c := range []struct{ args, want string }{
		{"get odd+/+zone a", "does not answer"},
		{"get none a", "no zone"},
		{"get odd+/+zone", "say which key"},
		{"get", "requires at least 1 arg"},
		{"get odd+/+zone a --key-base64 YQ==", "not both"},
		{"shake", "unknown command"},
		{"watch --outcome bad", "must be one of"},
		{"zones --address 127.0.0.1:1", "is Caddy running"},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "+", " ")
		}
		output, err := s.rateLimit(args...)
		exit, failed := err.(*exec.ExitError) //nolint:errorlint // as Run returns it
		if !failed || exit.ExitCode() != 1 || !strings.Contains(output, c.want) {
			t.Errorf("%s: %v, want exit code 1 and %q in\n%s", c.args, err, c.want, output)
		}
	}
	if output, err := s.rateLimit("stores"); err != nil || !strings.Contains(output, "  no ") || !strings.Contains(output, "refused") {
		t.Errorf("stores without Redis: %v\n%s", err, output)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), "__complete", "rate-limit", "--address", "unix/"+filepath.Join(s.dir, "admin"), "get", "")
	if output, err := cmd.Output(); err != nil || !strings.HasPrefix(string(output), "odd / zone\n") {
		t.Errorf("completion: %v %s", err, output)
	}
}

// TestCommandWatch goes on over a reload.
func TestCommandWatch(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, byQuery(memory))
	type result struct {
		output string
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		output, err := s.rateLimit("watch", "odd / zone", "-n", "300", "--rate", "1000")
		ended <- result{output, err}
	}()
	client := newClient(t, "")
	for n := 0; ; n++ {
		if n == 100 {
			s.mustLoad(strings.Replace(byQuery(memory), "respond ok", "respond new", 1))
		}
		if _, err := sendAcross(client, s.url("/?k=a")); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-ended:
			if r.err != nil || strings.Count(r.output, "  'odd / zone'  a  ") != 300 {
				t.Errorf("%v\n%s", r.err, r.output)
			}
			return
		default:
		}
	}
}
