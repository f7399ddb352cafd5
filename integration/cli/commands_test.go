package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestCommandKeys: commands take keys of any bytes, and a key that `top` prints can be pasted into the
// next command in a shell. Each key is tried with one more command besides get and reset, because all
// commands read a key in the same way.
func TestCommandKeys(t *testing.T) {
	t.Parallel()
	type change struct {
		command, more, outcome string
		used, quota            int64
	}
	changes := [][]change{
		{{"set", " 3/1h", "allowed", 2, 3}, {"set --clear", "", "limited", 2, 2}},
		{{"set", " 3/2h", "allowed", 0, 3}}, // another window, in which nothing was used
		{{"ban", "", "banned", 2, 2}, {"unban", "", "limited", 2, 2}},
		{{"set --exempt", "", "exempt", 0, 0}},
	}
	harness.AnyStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.ByQuery(store, "overrides"))
		client := harness.NewClient(t, "")
		for _, key := range harness.AwkwardKeys {
			s.Admitted(client, 3, harness.WithKey(key))
		}
		output, err := s.RateLimit("top", "odd / zone", "--refused", "-n", "100")
		table, _, _ := strings.Cut(output, "\n\n")
		lines := strings.Split(table, "\n")
		if err != nil || len(lines) != len(harness.AwkwardKeys)+1 {
			t.Fatalf("%v, %d lines for %d keys:\n%s", err, len(lines), len(harness.AwkwardKeys), output)
		}
		column := strings.Index(lines[0], "KEY")
		seen := make(map[string]bool)
		for i, line := range lines[1:] {
			var k harness.KeyState
			for _, c := range append([]change{{"get", "", "limited", 2, 2}}, changes[i%len(changes)]...) {
				pasted := strings.Replace(line[column:], "(no key)", "''", 1)
				text, err := s.Shell(`"$CADDY" rate-limit ` + c.command + ` --json --address "unix/$ADMIN" 'odd / zone' ` + pasted + c.more)
				k = harness.KeyState{}
				if err == nil {
					err = json.Unmarshal([]byte(text), &k)
				}
				if err != nil || k.Outcome != c.outcome || k.Used != c.used || k.Quota != c.quota {
					t.Errorf("%s with %s pasted: %v, %s", c.command, line[column:], err, text)
				}
			}
			for _, key := range harness.AwkwardKeys {
				if k.Is(key) {
					seen[key] = true
				}
			}
		}
		for _, key := range harness.AwkwardKeys {
			if !seen[key] {
				t.Errorf("key %q cannot be pasted", key)
			}
		}
	})
}

// TestCommandReset: a key of any bytes can be given as an argument and is reset.
func TestCommandReset(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.ByQuery(harness.Memory))
	client := harness.NewClient(t, "")
	for _, key := range harness.AwkwardKeys {
		s.Admitted(client, 3, harness.WithKey(key))
		arguments := []string{"reset", "odd / zone", "--", key}
		if strings.Contains(key, "\x00") {
			arguments = []string{"reset", "odd / zone", "--key-base64", base64.StdEncoding.EncodeToString([]byte(key))}
		}
		if output, err := s.RateLimit(arguments...); err != nil || !strings.HasPrefix(output, "Reset ") || !strings.HasSuffix(output, " in zone 'odd / zone'.\n") {
			t.Errorf("resetting %q: %v %s", key, err, output)
		}
		if got := s.Admitted(client, 1, harness.WithKey(key)); got != 1 {
			t.Errorf("key %q is refused after the reset", key)
		}
	}
}

// TestCommands: what each command prints, and how it fails.
func TestCommands(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	s := harness.StartCaddy(t, strings.Replace(harness.ByQuery(harness.Redis(redisServer.Addr()), "overrides"), "rate_limit {", `rate_limit {
		zone five {
			key {http.request.uri.query.k}
			plan {http.request.header.Plan} {
				free 12/1h
				pro  30/1h
				default free
			}
			cost 5
		}`, 1))
	s.Admitted(harness.NewClient(t, ""), 5, "/?k=a")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"zones", []string{"'odd / zone'", "sliding_window_log 2/1h", "{query.k}", "redis " + redisServer.Addr(), "  2  ", "  3  "}},
		{"zones --json", []string{`"allowed": 2`, `"limited": 3`, `"max_events":`}},
		{"zones odd+/+zone", []string{"on_store_error", "deny", "1 (1 limited)", " in the last minute"}},
		{"top", []string{"'odd / zone'  -     5         1        0        a", "five          free  5         3        0        a"}},
		{"get odd+/+zone a", []string{"limited", "2 of 2", "more in", "Zone 'odd / zone' is refusing this key: 2 of 2 used. Next request allowed at ", "rate-limit reset --address unix/"}},
		{"get a", []string{"five          free (default)  limited  10 of 12  2 units, for 0 requests of 5 each", ": a request costs 5, and only 2 of 12 are left. A request that costs at most 2 passes now. Next request allowed at "}},
		{"get five a --plan pro", []string{"10 of 30", "20 units, for 4 requests of 5 each", "allows this key"}},
		{"get five a --cost 1", []string{"free (default)  allowed  10 of 12  2 ", "allows this key"}},
		{"get five a --cost 13", []string{"is refusing this key under plan free: a request costs 13, and the limit never allows more than 12", "add the option overrides to the zone"}},
		{"set odd+/+zone b 7/1m --for 2h --note some'+thing", []string{"override  sliding_window_log 7/1m until ", `, note: 'some'\'' thing'`, "0 of 7"}},
		{"explain --from 127.0.0.1 http://example.com/?k=b", []string{"'odd / zone'  sliding_window_log 2/1h, override sliding_window_log 7/1m until "}},
		{"set odd+/+zone b --exempt", []string{"exempt until it is cleared", "does not limit this key: an override exempts it until it is cleared."}},
		{"ban odd+/+zone b", []string{"state     banned", "an operator has banned it until it is unbanned", "rate-limit unban --address"}},
		{"unban odd+/+zone b", []string{"allowed"}},
		{"set odd+/+zone b --clear", []string{"allowed"}},
		{"stores", []string{"redis " + redisServer.Addr(), "yes", "closed"}},
		{"stores --check", []string{"yes"}},
		{"stores --json", []string{`"answers": true`, `"instances": 1`}},
		{"", []string{"See what happens, such as", "Plan a limit, such as", "stores", "watch"}},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "+", " ")
		}
		output, err := s.RateLimit(args...)
		for _, want := range c.want {
			if err != nil || !strings.Contains(output, want) {
				t.Errorf("%s: %v, want %q in\n%s", c.args, err, want, output)
			}
		}
	}
	output, err := s.RateLimit("top", "-n", "1")
	table, _, _ := strings.Cut(output, "\n\n")
	if rows := strings.Count(table, "odd / zone") + strings.Count(table, "five"); err != nil || rows != 1 {
		t.Errorf("top -n 1: %v, want one row of the two zones\n%s", err, output)
	}
	redisServer.Kill()
	for _, c := range []struct{ args, want string }{
		{"get odd+/+zone a", "does not answer"},
		{"get none a", "no zone"},
		{"get fve a", `no zone "fve" in the running config; its zones are "five", "odd / zone"; did you mean "five"?`},
		{"get five a --plan fre", `its plans are free, pro; did you mean "free"?`},
		{"get odd+/+zone", "the key is missing"},
		{"get", "the key is missing: write 'caddy rate-limit get 203.0.113.7'"},
		{"get odd+/+zone a --key-base64 YQ==", "not both"},
		{"get odd+/+zone " + strings.Repeat("é", 20000), "longer than the admin endpoint takes"},
		{"set odd+/+zone a 5", "does not answer"},
		{"set odd+/+zone a --clear", "does not answer"},
		{"set odd+/+zone", "the limit is missing"},
		{"set odd+/+zone a --exempt --plan pro", "--plan and --exempt exclude each other"},
		{"set odd+/+zone a --clear --for 1h", "--clear and --for exclude each other"},
		{"set odd+/+zone k", "(the last argument, k, is the limit)"},
		{"set odd+/+zone 5", "the key is missing"},
		{"set five a 5/1m", "does not allow overrides: add the option overrides"},
		{"ban odd+/+zone a --for never", `"never" is not a duration: write one such as 90s, 2h or 7d`},
		{"ban odd+/+zone a --for 1ms", "must be at least 1s"},
		{"ban odd+/+zone a", "does not answer"},
		{"unban odd+/+zone a", "does not answer"},
		{"unban", "the zone is missing: write caddy rate-limit unban <zone> [<key>...]"},
		{"shake", `unknown command "shake": the commands are ban, `},
		{"gte", `unknown command "gte": did you mean get`},
		{"stores --check", "not all stores answer: redis " + redisServer.Addr()},
		{"stores --check --json", "not all stores answer"},
		{"zones --address localhost:", "is Caddy running"},
		{"watch --outcome bad", "must be one of"},
		{"zones --address 127.0.0.1:1", "is Caddy running"},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "+", " ")
		}
		output, err := s.RateLimit(args...)
		exit, failed := err.(*exec.ExitError) // as Run returns it
		if !failed || exit.ExitCode() != 1 || !strings.Contains(output, c.want) {
			t.Errorf("%s: %v, want exit code 1 and %q in\n%s", c.args, err, c.want, output)
		}
	}
	if output, err := s.RateLimit("stores"); err != nil || !strings.Contains(output, "  no ") || !strings.Contains(output, "refused") {
		t.Errorf("stores without Redis: %v\n%s", err, output)
	}
	// The calls of a shell that has loaded `caddy completion bash`.
	for _, c := range []struct{ args, want []string }{
		{[]string{""}, []string{"ban", "bans", "get", "overrides", "reset", "set", "stores", "top", "unban", "watch", "zones"}},
		{[]string{"--address", "unix/" + filepath.Join(s.Dir, "admin"), "unban", ""}, []string{"five", "odd / zone"}},
		{[]string{"set", "--"}, []string{"--clear", "--exempt", "--for", "--plan"}},
		{[]string{"--address", "unix/" + filepath.Join(s.Dir, "admin"), "get", "five", "a", "--plan", ""}, []string{"free", "pro"}},
		{[]string{"--address", "unix/" + filepath.Join(s.Dir, "admin"), "get", "--plan", ""}, []string{"free", "pro"}},
		{[]string{"watch", "--outcome", "bann"}, []string{"banned"}},
	} {
		cmd := exec.CommandContext(t.Context(), harness.CommandBinary(t), append([]string{"__complete", "rate-limit"}, c.args...)...)
		output, err := cmd.Output()
		for _, want := range c.want {
			if !regexp.MustCompile("(?m)^" + want + "(\t|$)").Match(output) {
				t.Errorf("completing %q: %v, want %q in\n%s", c.args, err, want, output)
			}
		}
	}
}

// TestCommandWatch: watching continues after a reload.
func TestCommandWatch(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.ByQuery(harness.Memory))
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
			s.MustLoad(strings.Replace(harness.ByQuery(harness.Memory), "respond ok", "respond new", 1))
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
