package cli_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestWhyIsItRefused: three commands show why a client is refused and let it through: `top`, `get`,
// and the command that `get` prints.
func TestWhyIsItRefused(t *testing.T) {
	t.Parallel()
	harness.AnyStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.Caddyfile("", `
			rate_limit {
				zone "it's / limit" {
					match path /limit /own /banned
					key {client_ip}
					events 3
					window 1h
					overrides
				}
				zone hammered {
					match path /hammered
					key {client_ip}
					events 2
					window 1h
					ban 2h after 3 refusals in 10m
				}
				zone brisk {
					match path /brisk
					key {client_ip}
					algorithm token_bucket 20/1s
					burst 1
					ban 2h after 3 refusals in 10m
				}
				zone -heavy {
					match path /heavy
					key {client_ip}
					events 12
					window 1h
					cost 5
				}
				zone -one {
					match path /one
					events 1
					window 1h
				}
				zone blocked {
					match path /blocked
					key {client_ip}
					events 3
					window 1h
					block path /blocked
				}
				`+store+`
			}
			respond ok`))
		for _, c := range []struct {
			path, address string
			before        []string // commands that lead to it
			why           string
		}{
			{"/limit", "127.0.0.11", nil, "is refusing this key: 3 of 3 used. Next request allowed at "},
			{"/banned", "127.0.0.12", []string{`ban "it's / limit" 127.0.0.12 --note scraper`}, "is refusing this key: an operator has banned it until it is unbanned, note: scraper."},
			{"/own", "127.0.0.13", []string{`set "it's / limit" 127.0.0.13 0/1h`}, "is refusing this key: its limit is 0."},
			{"/hammered", "127.0.0.14", nil, "is refusing this key: it was refused too often, and is banned until "},
			{"/brisk", "127.0.0.15", nil, "is refusing this key: it was refused too often, and is banned until "},
			{"/heavy", "127.0.0.16", nil, "is refusing this key: a request costs 5, and only 2 of 12 are left. A request that costs at most 2 passes now. Next request allowed at "},
			{"/one", "127.0.0.17", nil, "is refusing this key: 1 of 1 used. Next request allowed at "},
		} {
			client := harness.NewClient(t, c.address)
			for _, line := range c.before {
				if output, err := s.Shell(`"$CADDY" rate-limit ` + line + ` --address unix/"$ADMIN"`); err != nil {
					t.Fatalf("%s: %v %s", line, err, output)
				}
			}
			patient.Until(t, c.path+" to be refused for long", func() bool {
				a := s.Get(client, c.path)
				wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
				return a.Status == http.StatusTooManyRequests && wait > 3000 && (wait > 7000 || !strings.Contains(c.why, "too often"))
			})

			top, err := s.RateLimit("top", "--refused")
			if key := c.address; err != nil || !strings.Contains(top, key) && c.path != "/one" {
				t.Errorf("%s: top does not show the refused key: %v\n%s", c.path, err, top)
			}
			why, err := s.RateLimit("get", c.address)
			if err != nil || !strings.Contains(why, c.why) {
				t.Errorf("%s: %v, want %q in\n%s", c.path, err, c.why, why)
			}
			remedy := suggested(s, why)
			if output, err := s.Shell(remedy); err != nil {
				t.Errorf("%s: %s: %v %s", c.path, remedy, err, output)
			}
			if a := s.Get(client, c.path); a.Status != http.StatusOK {
				t.Errorf("%s: status %d after %s", c.path, a.Status, remedy)
			}
			s.Must("DELETE", "/rate_limit/zones/-one/key", "")
		}

		// No command can change what the config blocks, but `get` mentions it.
		client := harness.NewClient(t, "127.0.0.18")
		if a := s.Get(client, "/blocked"); a.Status != http.StatusForbidden {
			t.Fatalf("status %d, want 403", a.Status)
		}
		why, err := s.RateLimit("get", "blocked", "127.0.0.18")
		if err != nil || !strings.Contains(why, "1 refused (counted by this instance since ") || !strings.Contains(why, "block refuses some requests with status 403") {
			t.Errorf("%v\n%s", err, why)
		}
		watch := exec.CommandContext(t.Context(), "bash", "-c", "exec "+suggested(s, why)+" -n 1")
		watch.Dir, watch.Env = s.Dir, harness.Environment(s.Dir)
		ended := make(chan string, 1)
		go func() {
			output, err := watch.CombinedOutput()
			if err != nil {
				t.Error(err)
			}
			ended <- string(output)
		}()
		for seen := ""; seen == ""; {
			select {
			case seen = <-ended:
				if !strings.Contains(seen, "rejected") || !strings.Contains(seen, "(the request is blocked)") {
					t.Errorf("watch shows\n%s", seen)
				}
			default:
				s.Get(client, "/blocked")
			}
		}
	})
}

// suggested returns the command that `get` has printed, which must be the only one.
func suggested(s *harness.Server, answer string) string {
	s.T.Helper()
	command := ""
	for line := range strings.Lines(answer) {
		if strings.HasPrefix(line, "  "+harness.CommandBinary(s.T)+" rate-limit ") {
			if command != "" {
				s.T.Errorf("more than one command in\n%s", answer)
			}
			command = strings.TrimSpace(line)
		}
	}
	if !strings.Contains(command, " --address unix/"+filepath.Join(s.Dir, "admin")+" ") {
		s.T.Fatalf("no command that says where, in\n%s", answer)
	}
	return command
}
