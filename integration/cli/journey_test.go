//go:build deep

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// goldenScreens has what people see in a terminal.
const goldenScreens = "testdata/screens.txtar"

// journey is a person in a terminal of 80 columns. The commands that are typed, and what they print, are
// compared with a case of testdata/screens.txtar, so a reader sees there what an operator sees.
type journey struct {
	t      *testing.T
	dir    string
	env    []string
	screen strings.Builder
	want   golden.Case
}

// startJourney begins a journey at the machine of a Caddy, which is called caddy in its shell.
func startJourney(t *testing.T, s *harness.Server, want golden.Case) *journey {
	t.Helper()
	bin := filepath.Join(s.Dir, "bin")
	err := errors.Join(os.MkdirAll(bin, 0o700), os.RemoveAll(filepath.Join(bin, "caddy")), os.Symlink(harness.CommandBinary(t), filepath.Join(bin, "caddy")))
	if err != nil {
		t.Fatal(err)
	}
	return &journey{t: t, dir: s.Dir, want: want, env: append(harness.Environment(s.Dir),
		"PATH="+bin+":"+os.Getenv("PATH"), "CADDY_ADMIN=unix/"+filepath.Join(s.Dir, "admin"), "SITE="+s.Address, "COLUMNS=80")}
}

// shellOfJourneys makes curl print only the status, and send all requests to the Caddy.
const shellOfJourneys = `
	curl() { command curl -s --max-time 30 -o /dev/null -w '%{http_code} ' --connect-to "::$SITE" "$@"; }
	`

// types runs a line in the shell and puts it on the screen with its output. The exit code is shown
// unless it is 0.
func (j *journey) types(line string) (output string) {
	j.t.Helper()
	cmd := exec.CommandContext(j.t.Context(), "bash", "-c", shellOfJourneys+line)
	cmd.Dir, cmd.Env = j.dir, j.env
	text, err := cmd.CombinedOutput()
	if exit, ok := asExit(err); err != nil && !ok {
		j.t.Fatal(err)
	} else if ok {
		text = fmt.Appendf(text, "(exit code %d)\n", exit.ExitCode())
	}
	output = string(text)
	if strings.HasPrefix(line, "for ") || strings.HasPrefix(line, "curl ") {
		output = strings.TrimSpace(output) + "\n"
	}
	if strings.HasPrefix(line, "caddy reload") {
		output = ""
		if err != nil {
			j.t.Errorf("%s: %v\n%s", line, err, text)
		}
	}
	shown := output
	if regexp.MustCompile(" (stores|bans|overrides)").MatchString(line) { // the widths of durations differ
		shown = regexp.MustCompile(`  +`).ReplaceAllString(output, "  ")
		shown = regexp.MustCompile(`  (at most )?`+aDuration+`  `).ReplaceAllString(shown, "  $1<time>  ")
		shown = regexp.MustCompile(`  (at most )?`+aDuration+`  `).ReplaceAllString(shown, "  $1<time>  ") // one blank ends two cells
	}
	j.screen.WriteString("$ " + line + "\n" + shown + "\n")
	return output
}

// notes writes what cannot be typed.
func (j *journey) notes(text string) { j.screen.WriteString("# " + text + "\n\n") }

// varying are the parts of screens that differ from run to run, and what replaces each. The replacement
// is as wide, so that columns stay straight.
var varying = []struct{ what, standsFor string }{
	{`\d\d:\d\d:\d\d`, "hh:mm:ss"},
	{`"ts":\d+\.\d+`, `"ts":0`},
	{`\d\.\d\d/s`, "0.00/s"},
	{`\d\d\.\d/s`, "0.00/s"},
	{`127\.0\.0\.1:\d{5}\b`, "127.0.0.1:16379"},
	{`  1  -  clients`, "  2  -  clients"},         // a Caddy learns of another one with its next heartbeat
	{`  no  (open|half-open)  `, "  no  closed  "}, // if it was probed more often
	{`does not answer: [^;]+;`, "does not answer: dial tcp 127.0.0.1:16379: connect: connection refused;"}, // the breaker may be open
}

// duration is a duration that is a cell of a table, or in parentheses in a sentence.
var (
	aDuration      = `(?:\d+[dhm])*\d+(?:\.\d+)?(?:d|h|m|s|ms|µs)`
	durationCell   = regexp.MustCompile(`(  (?:at most )?)(` + aDuration + `)(  +|\n)`)
	durationInText = regexp.MustCompile(`\(in ` + aDuration + `\)(, note: '[^']*')?(  +)?`)
)

// untimed replaces the durations in a line, so that columns stay straight.
func untimed(line string) string {
	if strings.HasPrefix(line, "$") || strings.HasPrefix(line, "#") {
		return line
	}
	line = durationInText.ReplaceAllStringFunc(line, func(text string) string {
		found := durationInText.FindStringSubmatch(text)
		return "(in <time>)" + found[1] + found[2][:min(2, len(found[2]))]
	})
	for durationCell.MatchString(line) { // a blank can end one cell and begin the next
		line = durationCell.ReplaceAllStringFunc(line, func(text string) string {
			cell := durationCell.FindStringSubmatch(text)
			if blanks := len(cell[2]) + len(cell[3]) - len("<time>"); cell[3] != "\n" {
				return cell[1] + "<time>" + strings.Repeat(" ", max(2, blanks))
			}
			return cell[1] + "<time>\n"
		})
	}
	return line
}

// ends compares the screen with the golden one.
func (j *journey) ends() {
	j.t.Helper()
	screen := j.screen.String()
	for _, v := range varying {
		screen = regexp.MustCompile(v.what).ReplaceAllString(screen, v.standsFor)
	}
	var lines strings.Builder
	for line := range strings.Lines(screen) {
		lines.WriteString(untimed(line))
	}
	j.want.Check(j.t, strings.TrimRight(lines.String(), "\n")+"\n")
}

// asExit returns the error of a command that has failed.
func asExit(err error) (exit *exec.ExitError, ok bool) { ok = errors.As(err, &exit); return exit, ok }
