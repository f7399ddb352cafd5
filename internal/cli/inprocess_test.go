package cli_test

import (
	"bufio"
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

// TestExitCodeOfDiff: with --exit-code, a config that can refuse what passed before ends with 2, in all forms of output,
// and another one with 0.
func TestExitCodeOfDiff(t *testing.T) {
	here(t, map[string]string{"less": limitedSite, "more": strings.Replace(limitedSite, "2/1m", "3/1m", 1)})
	for args, want := range map[string]int64{
		"more less": 0, "--exit-code more less": 2, "--exit-code --json more less": 2, "--exit-code --markdown more less": 2,
		"--exit-code less more": 0, "--exit-code less less": 0, "--exit-code less missing": 1,
	} {
		if output, got := offline(t, "", append([]string{"diff"}, strings.Fields(args)...)...); got != want {
			t.Errorf("%s: %d, want %d\n%s", args, got, want, output)
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
