//go:build deep

// Package cli_test tests caddy rate-limit as operators use it, down to what they see on a screen.
package cli_test

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// awkwardKeys are keys that are hard to pass through paths, queries, JSON, shells and tables.
var awkwardKeys = []string{
	"plain", "", "a/b", "a//b/../c", ".", "..", `"double" 'single' \back`, "line\nbreak\ttab", "grüße 世界",
	"\xff\xfe raw", "half \xc3", "nul\x00byte", "-hyphen", "100%25 a+b&c=d;e#f", "\x1b[31mred\u202e", "{client_ip} $HOME `id`", "  two  ",
}

// byQuery returns a site with a zone whose key comes from the query, and which allows overrides.
func byQuery(store string) string {
	return harness.Caddyfile("", `
		rate_limit {
			zone "odd / zone" {
				key {http.request.uri.query.k}
				rate 2/1h
				overrides
			}
			`+store+`
		}
		respond ok`)
}

// TestCommandKeys: commands take keys of any bytes, and a key that `top` prints can be pasted into the
// next command in a shell. Each key is tried with one more command besides get, because all commands read a key in
// the same way.
func TestCommandKeys(t *testing.T) {
	t.Parallel()
	type change struct {
		command, more, outcome string
		used, quota            int64
	}
	type state struct {
		Key, Outcome string
		KeyBase64    []byte `json:"key_base64"`
		Used, Quota  int64
	}
	changes := [][]change{
		{{"set", " 3/1h", "allowed", 2, 3}, {"set --clear", "", "limited", 2, 2}},
		{{"set", " 3/2h", "allowed", 0, 3}}, // another window, in which nothing was used
		{{"ban", "", "banned", 2, 2}, {"unban", "", "limited", 2, 2}},
		{{"set --exempt", "", "exempt", 0, 0}},
	}
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, byQuery(store))
		client := harness.NewClient(t, "")
		for _, key := range awkwardKeys {
			s.Admitted(client, 3, "/?k="+url.QueryEscape(key))
		}
		output, err := s.RateLimit("top", "odd / zone", "--refused", "-n", "100")
		table, _, _ := strings.Cut(output, "\n\n")
		lines := strings.Split(table, "\n")
		if err != nil || len(lines) != len(awkwardKeys)+1 {
			t.Fatalf("%v, %d lines for %d keys:\n%s", err, len(lines), len(awkwardKeys), output)
		}
		column := strings.Index(lines[0], "KEY")
		seen := make(map[string]bool)
		for i, line := range lines[1:] {
			var k state
			for _, c := range append([]change{{"get", "", "limited", 2, 2}}, changes[i%len(changes)]...) {
				pasted := strings.Replace(line[column:], "(no key)", "''", 1)
				text, err := s.Shell(`"$CADDY" rate-limit ` + c.command + ` --json --address "unix/$ADMIN" 'odd / zone' ` + pasted + c.more)
				k = state{}
				if err == nil {
					err = json.Unmarshal([]byte(text), &k)
				}
				if err != nil || k.Outcome != c.outcome || k.Used != c.used || k.Quota != c.quota {
					t.Errorf("%s with %s pasted: %v, %s", c.command, line[column:], err, text)
				}
			}
			seen[cmp.Or(string(k.KeyBase64), k.Key)] = true
		}
		for _, key := range awkwardKeys {
			if !seen[key] {
				t.Errorf("key %q cannot be pasted", key)
			}
		}
	})
}

// TestCommandWatch: watching continues after a reload.
func TestCommandWatch(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, byQuery(harness.Memory))
	type result struct {
		output string
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		output, err := s.RateLimit("watch", "odd / zone", "-n", "300", "--rate", "1000")
		ended <- result{output, err}
	}()
	client := harness.NewClient(t, "")
	for n := 0; ; n++ {
		if n == 100 {
			s.MustLoad(strings.Replace(byQuery(harness.Memory), "respond ok", "respond new", 1))
		}
		if _, err := harness.Send(client, s.URL("/?k=a")); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-ended:
			if r.err != nil || strings.Count(r.output, "  'odd / zone'  a   ") != 300 {
				t.Errorf("%v\n%s", r.err, r.output)
			}
			return
		default:
		}
	}
}

// TestCommandsFindTheConfig: commands find the admin endpoint by the Caddyfile of the working directory, as Caddy's
// own commands do, and log nothing. A Caddyfile that cannot be adapted here does not stop them.
func TestCommandsFindTheConfig(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone z {
				key {client_ip}
				rate 5/1m
			}
		}
		respond ok`))
	site := "{\n\tadmin unix/" + filepath.Join(s.Dir, "admin") + "\n}\n:1 {\n}\n"
	for name, text := range map[string]string{"Caddyfile": site, "named": site, "broken/Caddyfile": "{\n\tadmin {$NOT_SET}\n\tno_such_option\n}\n"} {
		file := filepath.Join(s.Dir, "configs", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		`cd configs && "$CADDY" rate-limit zones 2>&1`,
		`cd / && "$CADDY" rate-limit zones --config "$OLDPWD/configs/Caddyfile" 2>&1`,
		`"$CADDY" rate-limit zones -c configs/named -a caddyfile 2>&1`,
		`cd configs/broken && "$CADDY" rate-limit zones --address unix/"$ADMIN" 2>&1`,
	} {
		output, err := s.Shell(line)
		if err != nil || !strings.HasPrefix(output, "ZONE ") || !strings.Contains(output, "\nz ") {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
	output, err := s.Shell(`cd configs/broken && "$CADDY" rate-limit zones 2>&1 || true`)
	if err != nil || !strings.Contains(output, "localhost:2019") || strings.Contains(output, "no_such_option") {
		t.Errorf("%v: a Caddyfile that cannot be adapted: %s", err, output)
	}
	output, err = s.Shell(`"$CADDY" rate-limit zones -c configs/broken/Caddyfile 2>&1 || true`)
	if err != nil || !strings.Contains(output, "no_such_option") {
		t.Errorf("%v: one that was named: %s", err, output)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "configs", "off"), []byte("{\nadmin off\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err = s.Shell(`"$CADDY" rate-limit zones -c configs/off -a caddyfile 2>&1 || true`)
	if err != nil || !strings.Contains(output, "the config has the option admin off") {
		t.Errorf("%v: one without an admin endpoint: %s", err, output)
	}
}
