package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/seed-161337e5/caddyratelimit"
)

// command returns caddy rate-limit with arguments, to run in this process.
func command(output io.Writer, args ...string) *cobra.Command {
	cmd := &cobra.Command{Use: "rate-limit", SilenceUsage: true}
	caddycmd.Commands()["rate-limit"].CobraFunc(cmd)
	cmd.SetOut(output)
	cmd.SetErr(output)
	cmd.SetArgs(args)
	return cmd
}

// site writes a Caddyfile with a zone.
func site(t *testing.T, dir, name, options string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	text := "example.com {\n\trate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n" + options + "\n\t\t}\n\t}\n\trespond ok\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestWatchedCases: with --watch, cases are carried out again when their file or their config changes, whether or not
// both can be read, until the command is interrupted.
func TestWatchedCases(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile.test")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const five = "case five {\n\tGET / repeat 6 pass 5\n}\n"
	site(t, dir, "Caddyfile", "rate 5/1m")
	write(five)
	ctx, interrupt := context.WithCancel(t.Context())
	output, prints := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := command(prints, "test", "--watch", file).ExecuteContext(ctx)
		_ = prints.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(output)
	await := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the output has ended before %q", what)
	}
	await("1 case, 0 failed")
	site(t, dir, "Caddyfile", "rate 50/1m")
	await("1 case, 1 failed")
	write("case five {\n\tGET / by cleints\n}\n")
	await(`the config has no zone "cleints"; did you mean "clients"?`)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await("no such file")
	write("case fifty {\n\tGET / repeat 51 pass 50\n}\n")
	await("1 case, 0 failed")
	interrupt()
	for lines.Scan() {
		t.Errorf("after the last change: %s", lines.Text())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestDiffOfPlans: each plan that differs has a line of its own, in words, and only what can refuse more says so.
func TestDiffOfPlans(t *testing.T) {
	dir := t.TempDir()
	const rest = "\n\t\t\t\tstaff unlimited\n\t\t\t\tpro token_bucket 100/1s burst 300"
	plans := func(name, lines string) string {
		return site(t, dir, name, "plan {host} {\n"+lines+rest+"\n}")
	}
	before := plans("Caddyfile.before", "free 60/1m\ntrial 5/1m\ndefault reject")
	for _, c := range []struct {
		name, lines string
		want        []string
		refuses     bool
	}{
		{"lower", "free 40/1m\ntrial 5/1m\ndefault reject", []string{"plan free lowered from sliding_window_log 60/1m to sliding_window_log 40/1m"}, true},
		{"raised", "free 90/1m\ntrial unlimited\ndefault reject", []string{"plan free raised from ", "plan trial changed from sliding_window_log 5/1m to unlimited"}, false},
		{"new", "free 60/1m\ntrial 5/1m\nbulk 9/1s\ndefault free", []string{"plan bulk is new: sliding_window_log 9/1s", "default plan now free, was reject 403"}, true},
		{"gone", "free 60/1m\ndefault reject 404", []string{"plan trial is gone, was sliding_window_log 5/1m", "default plan now reject 404, was reject 403"}, true},
		{"wait", "free 60/1m max_wait 2s\ntrial 5/1m\ndefault reject", []string{`plan free now {"max_events"`}, true},
	} {
		var output bytes.Buffer
		if err := command(&output, "diff", before, plans("Caddyfile."+c.name, c.lines)).Execute(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(output.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, output.String())
			}
		}
		if got := strings.Contains(output.String(), "it can refuse requests that passed before"); got != c.refuses {
			t.Errorf("%s: it can refuse more: %t\n%s", c.name, got, output.String())
		}
		if strings.Contains(output.String(), "plan pro") || strings.Contains(output.String(), "plan staff") {
			t.Errorf("%s: what does not differ\n%s", c.name, output.String())
		}
	}
}

// TestExitCodeOfDiff: with --exit-code, a config that can refuse what passed before ends with 2, in all forms of output,
// and another one with 0.
func TestExitCodeOfDiff(t *testing.T) {
	dir := t.TempDir()
	more, less := site(t, dir, "Caddyfile.more", "rate 100/1m"), site(t, dir, "Caddyfile.less", "rate 60/1m")
	for args, want := range map[string]int64{
		"diff " + more + " " + less:                          0,
		"diff --exit-code " + more + " " + less:              2,
		"diff --exit-code --json " + more + " " + less:       2,
		"diff --exit-code --markdown " + more + " " + less:   2,
		"diff --exit-code " + less + " " + more:              0,
		"diff --exit-code " + less + " " + less:              0,
		"diff --exit-code " + less + " " + less + ".missing": 1,
	} {
		var output bytes.Buffer
		err := command(&output, strings.Fields(args)...).Execute()
		if got := exitCode(err); got != want {
			t.Errorf("%s: %d (%v), want %d\n%s", args, got, err, want, output.String())
		}
	}
}

// exitCode returns the exit code of a command that has returned an error.
func exitCode(err error) int64 {
	if err == nil {
		return 0
	}
	if of := reflect.Indirect(reflect.ValueOf(err)); of.Kind() == reflect.Struct && of.FieldByName("ExitCode").IsValid() {
		return of.FieldByName("ExitCode").Int()
	}
	return 1
}
