package cli_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestCommandsAndParts: keys with several parts are shown and taken as their parts, and found by one
// of them. A key that no request can have is an error.
func TestCommandsAndParts(t *testing.T) {
	t.Parallel()
	harness.AnyStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
			rate_limit {
				zone clients {
					match path /clients
					key {client_ip}
					events 3
					window 1h
					overrides
				}
				zone search {
					match not path /clients /all
					key "{client_ip} {path}"
					events 3
					window 1h
					overrides
				}
				zone all {
					match path /all
					events 3
					window 1h
					overrides
				}
				`+store+`
			}
			respond ok`))
		client := harness.NewClient(t, "")
		from := []string{"X-Forwarded-For", "203.0.113.7"}
		for _, path := range []string{"/search", "/a%20b", "/other"} {
			if got := s.Admitted(client, 4, path, from...); got != 3 {
				t.Fatalf("%s: %d of 4 admitted, want 3", path, got)
			}
		}
		s.Admitted(client, 1, "/-x", "X-Forwarded-For", "2001:db8::1")
		for _, c := range []struct{ line, want string }{
			{"top --refused search", "203.0.113.7 '/a b'\n"},
			{"top search -n 100", "2001:db8::/64 /-x\n"},
			{"get search 203.0.113.7 /search", "key      203.0.113.7 /search\n"},
			{"get search '11:203.0.113.7 7:/search'", "reset --address unix/ADMIN search 203.0.113.7 /search\n"},
			{"get search 2001:db8::9 /-X", "used     1 of 3"},
			{"get 203.0.113.7", "search  limited  3 of 3  0     "},
			{"get /search", "203.0.113.7 /search\n"},
			{"get 2001:db8::7", "2001:db8::/64 /-x\n"},
			{"get search 203.0.113.7 /search --json", "\"parts\": [\n\t\t\"203.0.113.7\",\n\t\t\"/search\"\n\t]"},
			{"ban clients 2001:db8::/64", "2001:db8::/64"},
			{"ban search 203.0.113.7 '/a b' --for 1h", "unban --address unix/ADMIN search 203.0.113.7 '/a b' && "},
			{"reset search 203.0.113.7 /search", ""},
			{"set search 203.0.113.7 /other 9/1h", "search"},
			{"get all", "allowed"},
			{"unban clients 203.0.113.7/32", "allowed"},
			{"watch --help", "value of each"},
			{"top --json search", `"parts": [`},
			{"get search --key-base64 " + base64Text("11:203.0.113.7 7:/search"), "203.0.113.7 /search"},
		} {
			line, want := c.line, c.want
			output, err := s.Shell(`"$CADDY" rate-limit ` + line + ` --address unix/"$ADMIN"`)
			if want = strings.ReplaceAll(want, "ADMIN", s.Dir+"/admin"); err != nil || !strings.Contains(output, want) {
				t.Errorf("%s: %v, want %q in\n%s", line, err, want, output)
			}
		}
		const both, network, address = "the key has 2 parts: {client_ip} {path}; give both", "is a network, not an address", `"203.0.113.300" is not an address`
		for _, c := range []struct{ line, want string }{
			{"get search 203.0.113.7", both},
			{"ban search 203.0.113.7 --for 1h", both},
			{"unban search 203.0.113.7", both},
			{"reset search 203.0.113.7", both},
			{"set search 203.0.113.7 5/1m", both},
			{"watch search 203.0.113.7", both},
			{"reset search '203.0.113.7 /search'", both},
			{"reset search 203.0.113.7 / x", both + ", got 3"},
			{"reset search", "the key is missing: give {client_ip} {path}"},
			{"get clients 203.0.113.0/24", network + ": a key is one address; for networks, use the options block and exempt"},
			{"reset clients 203.0.113.0/24", network},
			{"reset clients 2001:db8::/32", "a key is one /64 network"},
			{"get clients 203.0.113.300", address},
			{"set clients 203.0.113.300 --exempt", address},
			{"reset search 203.0.113.300 /", address},
			{"unban clients 203.0.113.7:80", "did you mean 203.0.113.7?"},
			{"watch clients bob", `"bob" is not an address`},
			{"reset all bob", "all requests share one limit"},
			{"reset search --key-base64 " + base64Text("203.0.113.7"), "no request has this key"},
		} {
			line, want := c.line, c.want
			output, err := s.Shell(`"$CADDY" rate-limit ` + line + ` --address unix/"$ADMIN"`)
			if failed, ok := asExit(err); !ok || failed.ExitCode() != 1 || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want exit code 1 and %q\n%s", line, err, want, output)
			}
		}
		if a := s.Get(client, "/clients", from...); a.Status != http.StatusOK {
			t.Errorf("status %d, so an error has changed something", a.Status)
		}
	})
}

// TestCommandGetWithoutAnswer: a look-up that no zone has an answer to fails.
func TestCommandGetWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone search {
				key "{client_ip} {path}"
				events 3
				window 1h
			}
		}
		respond ok`))
	for _, more := range []string{"", "--json"} {
		output, err := s.RateLimit(strings.Fields("get 203.0.113.7 " + more)...)
		if failed, ok := asExit(err); !ok || failed.ExitCode() != 1 || !strings.Contains(output, "no recent key has this part") ||
			!strings.Contains(output, "no zone has an answer for this key") {
			t.Errorf("%v\n%s", err, output)
		}
	}
}

func base64Text(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// asExit returns the error of a command that has failed.
func asExit(err error) (exit *exec.ExitError, ok bool) { ok = errors.As(err, &exit); return exit, ok }
