package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// screensSite is what the screens are of. Its names are longer than those of most sites, and what is left of its
// windows has the same width for most of a minute.
const screensSite = `{
	admin unix/%[1]s/admin
	auto_https off
	persist_config off
	log {
		output discard
	}
}
http:// {
	bind unix/%[1]s/http
	vars /seats plan staff
	rate_limit {
		zone api-by-customer {
			key  {header.User}
			rate 100/5099s
			overrides
		}
		zone logins {
			match path /login
			key   "{header.User} {path}"
			rate  3/5099s
			ban   2h after 10 refusals in 10m
		}
		zone seats {
			match path /seats
			key   {header.User}
			overrides
			plan  {vars.plan} {
				free    60/5099s
				pro     token_bucket 10/1s burst 300
				staff   unlimited
				default free
			}
		}
		zone uploads {
			match path /upload
			key   {header.User}
			rate  3/5099s
			overrides
		}
	}
	respond ok
}`

// startSite runs a Caddy in this process, and returns the folder of its sockets.
func startSite(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rl") // a short path, because those of sockets are bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil, screensSite, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// asks sends requests of a user to the site.
func asks(t *testing.T, dir, user, path string, n int) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "http"))
	}}
	defer transport.CloseIdleConnections()
	for range n {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", user)
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// runsDiffer is what differs from one run to the next. What ends in five minutes ends tomorrow before midnight, with a date.
var runsDiffer = regexp.MustCompile(`\b\d+\.\d+/s\b|\b([\d-]{10} )?\d\d:\d\d:\d\d|\b(\d+[dhm])*\d+(\.\d)?[dhms]\b|/here\b\S*`)

// TestGoldenScreensAtWidths: what people see in terminals of several widths. From 80 columns on, no line of a table is
// wider.
func TestGoldenScreensAtWidths(t *testing.T) {
	dir := startSite(t)
	const user = "a-customer-with-a-very-long-name@subsidiary.example.com"
	run := func(width int, args string) string {
		t.Setenv("COLUMNS", fmt.Sprint(width))
		var output bytes.Buffer
		all := append(strings.Fields(strings.ReplaceAll(args, "USER", user)), "--address", "unix/"+dir+"/admin")
		for i, arg := range all {
			all[i] = strings.ReplaceAll(arg, "~", " ")
		}
		if err := command(&output, all...).Execute(); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		return strings.NewReplacer(os.Args[0], "/here", dir, "/here").Replace(output.String())
	}
	var b strings.Builder
	show := func(width int, args string) {
		output := strings.ReplaceAll(run(width, args), "(in\n", "(in ") // where a sentence wraps that has the date of tomorrow
		fmt.Fprintf(&b, "$ caddy rate-limit %s\n", args)
		table, _, _ := strings.Cut(output, "\n\n")
		for line := range strings.Lines(output) {
			b.WriteString(strings.Join(strings.Fields(runsDiffer.ReplaceAllString(line, "* ")), " ") + "\n")
		}
		if width < 80 || args == "stores" || strings.Contains(args, " seats ann") {
			table = "" // names, numbers and times alone are wider
		}
		for line := range strings.Lines(table) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%s: %d columns in a terminal of %d: %s", args, n, width, line)
			}
		}
		b.WriteByte('\n')
	}
	for _, empty := range []string{"top", "top --refused", "bans", "overrides"} {
		show(80, empty)
	}
	asks(t, dir, user, "/login", 4)
	asks(t, dir, "bo", "/", 1)
	asks(t, dir, "ann", "/seats", 1)
	run(80, "ban uploads bo --for 7d --note scrapes")
	run(80, "ban api-by-customer eve --for 5m")
	run(80, "set uploads USER 30/1h --note agreed+until+June")
	for _, width := range []int{60, 80, 120, 200} {
		fmt.Fprintf(&b, "# %d columns\n\n", width)
		for _, args := range []string{
			"zones", "top", "top --refused", "get USER", "get ann", "get seats ann", "explain -H User:USER http://example.com/login", "stores", "doctor",
		} {
			show(width, args)
		}
	}
	show(200, "set seats ann token_bucket~10/1s~burst~300 --for 5m") // where no time is cut, and nothing breaks at one
	show(200, "bans")
	show(200, "overrides")
	golden.Open(t, "testdata/screens.txtar", "screens").Check(t, b.String())
}

// TestCommandsAreGrouped: the help lists each command in a group, by what one wants.
func TestCommandsAreGrouped(t *testing.T) {
	var output bytes.Buffer
	cmd := command(&output, "--help")
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.GroupID == "" && sub.Name() != "help" && sub.Name() != "completion" {
			t.Errorf("%s is in no group", sub.Name())
		}
	}
	at := 0
	for _, title := range []string{"See what happens, such as 'caddy rate-limit top --refused':\n", "Find out why, ", "Change what a key may do, ", "Plan a limit, "} {
		next := strings.Index(output.String(), title)
		if next <= at {
			t.Errorf("no group %q after the one before:\n%s", title, output.String())
		}
		at = next
	}
}
