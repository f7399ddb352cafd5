//go:build deep

package cli_test

import (
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// remedies is a config for [TestRemedies], in which zones have other options: what follows advice that only the config can.
func remedies(store string, edits map[string]string) string {
	zones := map[string]string{
		"dear":     "key {header.User}\nrate 2/1h\ncost 5\noverrides",
		"steep":    "key {header.User}\nrate 2/1h\ncost 5",
		"closed":   "key {client_ip}\nrate 3/1h\nblock 127.0.0.0/8",
		"keyed":    "key {header.X-Account}\nrate 3/1h\nmissing_key reject",
		"pages":    "key {header.User}\nrate 1/1h\noverrides",
		"hammered": "key {header.User}\nrate 5/1h\noverrides\nban 2h after 2 refusals in 1h",
		"parted":   "key {client_ip}\nrate 3/1h\nblock path /parted/blocked",
		"slots":    "key {header.User}\nalgorithm concurrency 1\nlease 1h\noverrides",
		"shared":   "algorithm concurrency 1\nlease 1h",
	}
	maps.Copy(zones, edits)
	text := ""
	for name, options := range zones {
		text += "zone " + name + " {\nmatch path /" + name + "*\n" + options + "\n}\n"
	}
	return harness.Caddyfile("", "rate_limit {\n"+text+store+"}\nreverse_proxy {$UPSTREAM}")
}

// TestRemedies: get says why a request is refused, and its advice lets it through.
func TestRemedies(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		upstream := harness.StartBackend(t, harness.AnswerAsAsked)
		upstream.Open("go")
		s := harness.StartCaddy(t, remedies(store, nil), upstream.Variable())
		client := harness.NewClient(t, "")
		hold := func(path, user string) {
			before, _ := upstream.Now()
			s.Begin(path, "User", user, "X-Gate", "stay")
			upstream.AwaitInside(t, before+1)
		}
		for _, c := range []struct {
			zone, user, before string // the commands that lead to the refusal
			hold               bool   // a request that runs before leads to it
			spent              bool   // a request that has ended before does
			sent, status       int    // the last of so many requests is refused
			fix                string // the commands of the advice, or its end
			edits              map[string]string
		}{
			{zone: "dear", user: "a", sent: 1, status: 429, fix: "set --exempt"},
			{zone: "steep", user: "a", sent: 1, status: 429, fix: "raise the limit, or add the option overrides to the zone and exempt the key.", edits: map[string]string{"steep": "key {header.User}\nrate 20/1h\ncost 5"}},
			{zone: "closed", user: "127.0.0.1", sent: 1, status: 403, fix: "Only the config can change that.", edits: map[string]string{"closed": "key {client_ip}\nrate 3/1h\nblock 192.0.2.0/24"}},
			{zone: "keyed", user: "", sent: 1, status: 401, fix: "Only the config can change that.", edits: map[string]string{"keyed": "key {header.X-Account}\nrate 3/1h\nmissing_key skip"}},
			{zone: "pages", user: "d", spent: true, sent: 1, status: 429, fix: "reset"},
			{zone: "pages", user: "e", before: "set pages e 0/1h", sent: 1, status: 429, fix: "set --clear"},
			{zone: "pages", user: "a", before: "ban pages a", sent: 1, status: 429, fix: "unban"},
			{zone: "pages", user: "b", spent: true, before: "ban pages b", sent: 1, status: 429, fix: "unban && reset"},
			{zone: "hammered", user: "a", before: "set hammered a 0/1h", sent: 3, status: 429, fix: "unban && set --clear"},
			{zone: "hammered", user: "b", sent: 8, status: 429, fix: "reset"},
			{zone: "slots", user: "a", hold: true, sent: 1, status: 429, fix: "reset"},
			{zone: "slots", user: "b", hold: true, before: "ban slots b", sent: 1, status: 429, fix: "unban && reset"},
			{zone: "shared", user: "", hold: true, sent: 1, status: 429, fix: "reset"},
		} {
			ask := func() int { return s.Get(client, "/"+c.zone, "User", c.user, "X-Gate", "go").Status }
			run := func(line string) {
				if output, err := s.Shell(line); err != nil {
					t.Fatalf("%s: %v %s", line, err, output)
				}
			}
			if c.hold {
				hold("/"+c.zone, c.user)
			}
			if c.spent {
				ask()
			}
			if c.before != "" {
				name, arguments, _ := strings.Cut(c.before, " ")
				run(`"$CADDY" rate-limit ` + name + ` --address unix/"$ADMIN" ` + arguments)
			}
			status := 0
			for range c.sent {
				status = ask()
			}
			if status != c.status {
				t.Fatalf("%s %s: status %d, want %d", c.zone, c.user, status, c.status)
			}
			why, err := s.RateLimit("get", c.zone, c.user)
			if err != nil {
				t.Fatal(err, why)
			}
			if strings.Contains(why, "banned") && strings.Contains(why, "double") {
				t.Errorf("%s %s: a higher limit ends no ban:\n%s", c.zone, c.user, why)
			}
			if c.edits != nil {
				if !strings.Contains(why, c.fix) {
					t.Errorf("%s: no %q in\n%s", c.zone, c.fix, why)
				}
				s.MustLoad(remedies(store, c.edits))
			} else {
				remedy := suggested(s, why)
				if got := commandsOf(remedy); got != c.fix {
					t.Errorf("%s %s: %s, want %s", c.zone, c.user, got, c.fix)
				}
				run(remedy)
			}
			if got := ask(); got != http.StatusOK {
				t.Errorf("%s %s: status %d after %s", c.zone, c.user, got, c.fix)
			}
			if c.edits != nil {
				s.MustLoad(remedies(store, nil))
			}
		}
		s.Admitted(client, 2, "/pages", "User", "c", "X-Gate", "go")
		why, err := s.RateLimit("get", "pages", "c")
		_, double, found := strings.Cut(why, "\nTo double its limit: ")
		if err != nil || !found {
			t.Fatalf("%v: no command that doubles the limit in\n%s", err, why)
		}
		if output, err := s.Shell(double); err != nil {
			t.Fatalf("%s: %v %s", double, err, output)
		}
		if got := s.Admitted(client, 2, "/pages", "User", "c", "X-Gate", "go"); got != 1 {
			t.Errorf("%d of 2 requests are admitted after the limit of 1 was doubled, want 1", got)
		}
		watchBlocked(t, s, client)
	})
}

// watchBlocked: no command can change what the config blocks, but get mentions it, and says how to watch it.
func watchBlocked(t *testing.T, s *harness.Server, client *http.Client) {
	t.Helper()
	const path = "/parted/blocked"
	if a := s.Get(client, path); a.Status != http.StatusForbidden {
		t.Fatalf("status %d, want 403", a.Status)
	}
	why, err := s.RateLimit("get", "parted", "127.0.0.1")
	if err != nil || !strings.Contains(why, "block refuses some requests with status 403") {
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
	for {
		select {
		case seen := <-ended:
			if !strings.Contains(seen, "(the request is blocked)") {
				t.Errorf("watch shows\n%s", seen)
			}
			return
		default:
			s.Get(client, path)
		}
	}
}

// suggested returns the command that get has printed, which must be the only one.
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

// commandsOf returns the names of the commands of a line, with a flag that says what to set.
func commandsOf(line string) string {
	var names []string
	for command := range strings.SplitSeq(line, " && ") {
		_, rest, _ := strings.Cut(command, " rate-limit ")
		words := strings.Fields(rest)[2:] // behind --address
		name := words[0]
		if name == "set" {
			name += " " + words[1]
		}
		names = append(names, name)
	}
	return strings.Join(names, " && ")
}
