package cli_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// explainConfig has several servers, with and without TLS, and things that a command must not touch.
const explainConfig = `{
	http_port 8080
	https_port 8443
	rate_limit {
		store redis {
			address REDIS
		}
	}
	log {
		output file DIR/default.log
	}
}
example.com {
	tls internal
	log {
		output file DIR/access.log
	}
	rate_limit {
		zone logins {
			match {
				method POST
				path /login
			}
			key "{client_ip} {http.request.tls.server_name} {http.request.proto}"
			events 5
			window 1m
		}
		zone bodies {
			match vars_regexp user {http.request.body} user=(\w+)
			key {re.user.1}
			events 3
			window 1m
			dry_run
		}
	}
	respond ok
}
http://inside.example.com:9000 {
	bind 127.0.0.1
	respond inside
}
http://inside.example.com:9000 {
	bind 127.0.0.2
	rate_limit {
		zone second {
			events 5
			window 1m
		}
	}
}
`

// TestExplainOffline: explain --offline answers from a config file, for the server that would get the
// request. It asks no store, and writes nothing.
func TestExplainOffline(t *testing.T) {
	t.Parallel()
	dir := harness.ShortDir(t)
	redis, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	config := strings.NewReplacer("DIR", dir, "REDIS", redis.Addr().String()).Replace(explainConfig)
	for name, text := range map[string]string{"Caddyfile": config, "form": "a=b&user=alice"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(input string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), harness.CommandBinary(t), append([]string{"rate-limit", "explain", "--offline"}, args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, harness.Environment(dir), strings.NewReader(input)
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	for _, c := range []struct {
		input string
		args  []string
		want  []string // without a status: the exit code is 1
		fails bool
	}{
		{"", []string{"-X", "POST", "https://example.com/login"}, []string{
			"(:8443)", "127.0.0.1 {http.request.tls.server_name} example.com {http.request.proto} HTTP/2.0", "It is allowed.",
		}, false},
		{"", []string{"-d", "@form", "https://example.com/"}, []string{
			"POST https://example.com/", "Zone logins does not count it: path /login does not match.", "key {re.user.1} alice", "(dry run)",
		}, false},
		{"user=bob", []string{"-d", "@-", "https://example.com/"}, []string{"{re.user.1} bob"}, false},
		{"", []string{"-d", "user=carol", "--config", filepath.Join(dir, "Caddyfile"), "--adapter", "caddyfile", "https://example.com/"}, []string{"{re.user.1} carol"}, false},
		{"", []string{"http://example.com/"}, []string{"static_response", "No limit applies to it: it meets no rate_limit handler."}, false},
		{"", []string{"http://127.0.0.2:9000/", "-H", "Host: inside.example.com"}, []string{"second", "sliding_window_log 5/1m"}, false},
		{"", []string{"http://inside.example.com:9000/"}, []string{"several servers may get it", "name the server"}, true},
		{"", []string{"https://example.com:8080/"}, []string{"has no TLS there"}, true},
		{"", []string{"http://example.com:8443/"}, []string{"expects TLS there: write https"}, true},
		{"", []string{"example.com"}, []string{"write a whole URL"}, true},
		{"", []string{}, []string{"the URL is missing: write caddy rate-limit explain <url>"}, true},
		{"", []string{"http://example.com/", "X-Foo: bar"}, []string{"there must be one URL, got 2 arguments"}, true},
		{"", []string{"--assume", "alice", "http://example.com/"}, []string{`--assume "alice": write it as 'http.auth.user.id=alice'`}, true},
		{"", []string{"-d", "@nowhere", "http://example.com/"}, []string{"no such file"}, true},
		{"", []string{"--config", "nowhere", "http://example.com/"}, []string{"nowhere"}, true},
	} {
		output, err := command(c.input, c.args...)
		if (err != nil) != c.fails {
			t.Errorf("%q: %v\n%s", c.args, err, output)
		}
		for _, want := range c.want {
			if !strings.Contains(output, want) {
				t.Errorf("%q: no %q in\n%s", c.args, want, output)
			}
		}
	}
	output, err := command("", "--json", "https://example.com/")
	var answer struct {
		Passes, Offline bool
		Outcome         string
	}
	_, object, _ := strings.Cut(output, "{\n")
	if err != nil || json.Unmarshal([]byte("{"+object), &answer) != nil || !answer.Passes || !answer.Offline || answer.Outcome != "not_limited" {
		t.Errorf("%v, %+v\n%s", err, answer, output)
	}
	if err := redis.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if conn, err := redis.Accept(); err == nil {
		t.Errorf("the store was asked from %s", conn.RemoteAddr())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "Caddyfile" && f.Name() != "form" {
			t.Errorf("%s was written", f.Name())
		}
	}
}
