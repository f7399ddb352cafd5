package headers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestHeadersAsOthersParseThem: parsers that other people wrote read the answers of all
// algorithms, allowed and refused, in every format for which there is a parser.
func TestHeadersAsOthersParseThem(t *testing.T) {
	t.Parallel()
	const limit, requests = 30, 42
	dir := npmInstall(t, "ratelimit-header-parser@0.1.0", "structured-headers@2.1.0")
	formats := map[string]string{
		"structured": "headers draft-10",
		"x":          "headers x-ratelimit",
		"spring":     "headers spring x-ratelimit",
		"draft6":     renamed("RateLimit"),
		"dashed":     renamed("X-Rate-Limit"),
	}
	algorithms := []string{"sliding_window_log", "sliding_window_counter", "token_bucket", "leaky_bucket", "fixed_window"}
	text := ""
	for format, options := range formats {
		for _, algorithm := range algorithms {
			name := format + "_" + algorithm
			text += fmt.Sprintf(`
			handle /%[1]s {
				rate_limit {
					zone %[1]s {
						algorithm %[2]s %[3]d/%[4]s
					}
					%[5]s
				}
				respond ok
			}`, name, algorithm, limit, longWindow, options)
		}
	}
	for _, algorithm := range algorithms {
		text += fmt.Sprintf(`
			handle /soon_%[1]s {
				rate_limit {
					zone soon_%[1]s {
						algorithm %[1]s 1/2s
					}
				}
				respond ok
			}`, algorithm)
	}
	text += `
		handle /structured_concurrency {
			rate_limit {
				zone structured_concurrency {
					algorithm concurrency
					events 30
				}
			}
			respond ok
		}`
	s := harness.StartCaddy(t, harness.Caddyfile("", text))
	client := harness.NewClient(t, "")
	var answers []answered
	for format := range formats {
		for _, algorithm := range algorithms {
			for i := range requests {
				a := s.Get(client, "/"+format+"_"+algorithm)
				answers = append(answers, answered{format, format + "_" + algorithm, i + 1, a.Status, a.Header})
			}
		}
	}
	for range requests {
		a := s.Get(client, "/structured_concurrency")
		answers = append(answers, answered{"structured", "structured_concurrency", 1, a.Status, a.Header})
	}
	for i, p := range parse(t, dir, answers) {
		answers[i].judge(t, p, limit)
	}
	if t.Logf("%d answers", len(answers)); len(answers) < 1000 {
		t.Errorf("%d answers are too few", len(answers))
	}
	comeBack(t, s, dir, algorithms)
}

// comeBack: a client that waits as long as the parser says is admitted.
func comeBack(t *testing.T, s *harness.Server, dir string, algorithms []string) {
	t.Helper()
	client := harness.NewClient(t, "")
	var refusals []answered
	var at []time.Time
	for _, algorithm := range algorithms {
		for {
			a := s.Get(client, "/soon_"+algorithm)
			if a.Status == http.StatusTooManyRequests {
				refusals, at = append(refusals, answered{zone: "soon_" + algorithm, Header: a.Header}), append(at, a.Done)
				break
			}
		}
	}
	for i, p := range parse(t, dir, refusals) {
		if len(p.Limits) != 1 || p.Limits[0].T < 1 || p.Limits[0].T > 4 {
			t.Errorf("%v is parsed as %+v", refusals[i].Header, p)
			continue
		}
		time.Sleep(time.Until(at[i].Add(time.Duration(p.Limits[0].T) * time.Second)))
		if a := s.Get(client, "/"+refusals[i].zone); a.Status != http.StatusOK {
			t.Errorf("%s: status %d after the %d s that %q says", refusals[i].zone, a.Status, p.Limits[0].T, refusals[i].Header["Ratelimit"])
		}
	}
}

// longWindow is so long that nothing comes back while a test runs.
const longWindow = "24h"

const longSeconds = 24 * 60 * 60

func renamed(prefix string) string {
	text := "headers x-ratelimit"
	for _, field := range []string{"Limit", "Remaining", "Reset"} {
		text += "\n header_name X-RateLimit-" + field + " " + prefix + "-" + field
	}
	return text
}

// answered is an answer, and its number among the answers of its zone.
type answered struct {
	format, zone string
	number       int
	status       int
	Header       http.Header `json:"header"`
}

// parsed is the result of a parser.
type parsed struct {
	Limit, Remaining int64
	Seconds          float64
	Limits, Policies []struct {
		Name       string
		R, T, Q, W int64
		Qu         string
	}
}

// judge compares the result with the limit, which is counted here.
func (a *answered) judge(t *testing.T, p parsed, limit int64) {
	t.Helper()
	left, refused := limit-int64(a.number), int64(a.number) > limit
	left = max(left, 0)
	bad := func(what string) {
		t.Helper()
		t.Errorf("%s, answer %d: %s: %v, parsed as %+v", a.zone, a.number, what, a.Header, p)
	}
	wait, err := strconv.ParseInt(a.Header.Get("Retry-After"), 10, 64)
	if refused != (a.status == http.StatusTooManyRequests) || refused != (err == nil) || refused && (wait < 1 || wait > 2*longSeconds) {
		bad("status or Retry-After")
	}
	if a.format != "structured" {
		if p.Limit != limit || p.Remaining != left || p.Seconds <= 0 || p.Seconds > 2*longSeconds {
			bad("values")
		}
		return
	}
	if len(p.Limits) != 1 || len(p.Policies) != 1 || p.Limits[0].Name != a.zone || p.Policies[0].Name != a.zone {
		bad("items")
		return
	}
	l, q := p.Limits[0], p.Policies[0]
	slots := a.zone == "structured_concurrency"
	switch {
	case l.R != left || q.Q != limit:
		bad("values")
	case slots && (q.Qu != "concurrent-requests" || q.W != 0 || l.T != 0):
		bad("unit")
	case !slots && (q.W != longSeconds || l.T < 1 || l.T > 2*longSeconds || refused && wait < l.T):
		bad("times")
	}
}

// parse has a Node script parse the answers.
func parse(t *testing.T, dir string, answers []answered) (results []parsed) {
	t.Helper()
	input, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/parse.cjs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "parse.cjs")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file)
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &complaint
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("parsing: %v\n%s", err, complaint.String())
	}
	if err := json.Unmarshal(output, &results); err != nil || len(results) != len(answers) {
		t.Fatalf("%d of %d answers are parsed: %v", len(results), len(answers), err)
	}
	return results
}

// npmInstall installs packages where no other program sees them.
func npmInstall(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	harness.NeedProgram(t, "npm", "REQUIRE_NPM")
	dir = t.TempDir()
	args := append([]string{"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"}, packages...)
	if output, err := exec.Command("npm", args...).CombinedOutput(); err != nil {
		if os.Getenv("REQUIRE_NPM") == "" {
			t.Skipf("SKIPPED: npm cannot install %v: %v\n%s", packages, err, output)
		}
		t.Fatalf("npm cannot install %v: %v\n%s", packages, err, output)
	}
	return dir
}
