package cli_test

import (
	"io"
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

// TestExitCodeOfDiff: with --exit-code, another config ends with 2, also in JSON, and the same config with 0.
func TestExitCodeOfDiff(t *testing.T) {
	here(t, map[string]string{"less": limitedSite, "more": strings.Replace(limitedSite, "2/1m", "3/1m", 1)})
	for args, want := range map[string]int64{
		"more less": 0, "--exit-code more less": 2, "--exit-code --json more less": 2,
		"--exit-code less more": 2, "--exit-code less less": 0, "--exit-code less missing": 1,
	} {
		if output, got := offline(t, "", append([]string{"diff"}, strings.Fields(args)...)...); got != want {
			t.Errorf("%s: %d, want %d\n%s", args, got, want, output)
		}
	}
	line := `{"ts":1795500000,"request":{"remote_ip":"192.0.2.1","method":"GET","host":"localhost","uri":"/"},"status":200}`
	if output, code := offline(t, line, "diff", "more", "less", "-"); code != 0 || !strings.Contains(output, "Of 1 request by 1 client") {
		t.Errorf("a log from the standard input: %d\n%s", code, output)
	}
	if output, code := offline(t, line, "diff", "-", "less", "-"); code != 1 || !strings.Contains(output, "can be read once") {
		t.Errorf("a config and a log from the standard input: %d\n%s", code, output)
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
