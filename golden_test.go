package caddyratelimit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
)

// The golden files are what configs mean, and what users read about configs that are wrong. Each
// has a config, a line of ten hyphens, and the result:
//
//	testdata/adapt   a Caddyfile, and the JSON that it adapts to; it also loads
//	testdata/errors  a Caddyfile, and the error that adapting it gives
//	testdata/load    a Caddyfile or the JSON of a handler, and the error that loading it
//	                 gives, or ok and the warnings that it logs
//
// With UPDATE_GOLDEN=1 the results are written anew.

const separator = "\n----------\n"

// secrets are the parts of every secret in the golden files. No result may have one.
var secrets = []string{"s3cr3t", "hunter2"}

type golden struct{ path, input, want string }

// goldens reads the files of one kind.
func goldens(t *testing.T, pattern string) []golden {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", filepath.FromSlash(pattern)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("golden files %s: %d, %v", pattern, len(paths), err)
	}
	files := make([]golden, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		input, want, found := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), separator)
		if !found && !updating() {
			t.Errorf("%s: no line of ten hyphens", path)
		}
		files[i] = golden{path, strings.TrimSuffix(input, "\n") + "\n", strings.TrimSpace(want)}
	}
	return files
}

func updating() bool { return os.Getenv("UPDATE_GOLDEN") != "" }

func (g golden) name() string { return strings.TrimSuffix(filepath.Base(g.path), filepath.Ext(g.path)) }

// check compares the result.
func (g golden) check(t *testing.T, got string) {
	t.Helper()
	switch {
	case got == g.want:
	case updating():
		if err := os.WriteFile(g.path, []byte(g.input[:len(g.input)-1]+separator+got+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s\n got: %s\nwant: %s", g.path, got, g.want)
	}
}

// checkError compares an error, which must not hold a secret.
func (g golden) checkError(t *testing.T, got string) {
	t.Helper()
	g.check(t, got)
	for _, secret := range secrets {
		if strings.Contains(got, secret) {
			t.Errorf("%s: the answer holds a secret: %s", g.path, got)
		}
	}
}

func adapt(text string) ([]byte, []caddyconfig.Warning, error) {
	return caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
}

func TestGoldenAdapt(t *testing.T) {
	for _, g := range goldens(t, "adapt/*.caddyfiletest") {
		t.Run(g.name(), func(t *testing.T) {
			config, warnings, err := adapt(g.input)
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range warnings {
				t.Errorf("warning: %s", warning)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, config, "", "\t"); err != nil {
				t.Fatal(err)
			}
			g.check(t, pretty.String())
			if !strings.Contains(g.input, " /etc/") { // files that only the reader has
				if got := load(t, config); !strings.HasPrefix(got, "ok") {
					t.Errorf("%s does not load: %s", g.path, got)
				}
			}
		})
	}
}

func TestGoldenErrors(t *testing.T) {
	for _, g := range goldens(t, "errors/*.txt") {
		t.Run(g.name(), func(t *testing.T) {
			_, _, err := adapt(g.input)
			if err == nil {
				t.Fatalf("%s adapts", g.path)
			}
			g.checkError(t, err.Error())
		})
	}
}

func TestGoldenLoad(t *testing.T) {
	for _, g := range goldens(t, "load/*.txt") {
		t.Run(g.name(), func(t *testing.T) {
			config := fmt.Appendf(nil, `{"apps":{"http":{"servers":{"srv0":{"listen":[":8080"],"routes":[{"handle":[%s]}]}}}}}`, g.input)
			if !json.Valid(config) {
				var err error
				if config, _, err = adapt(g.input); err != nil {
					t.Fatal(err)
				}
			}
			g.checkError(t, load(t, config))
		})
	}
}

// load does what `caddy validate` does. It returns the error, or ok and the limiter's warnings.
// In both cases, nothing may stay open.
func load(t *testing.T, config []byte) string {
	t.Helper()
	t.Setenv("REDIS_ADDRESS", "redis.example.com:6379")
	t.Setenv("REDIS_PASSWORD", "s3cr3t-hunter2")
	var c *caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(config), &c); err != nil {
		return "decoding config: " + err.Error()
	}
	c.StorageRaw = caddyconfig.JSON(map[string]string{"module": "file_system", "root": t.TempDir()}, nil)
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{
		WriterRaw: json.RawMessage(`{"output":"golden"}`), EncoderRaw: json.RawMessage(`{"format":"json"}`),
	}}}}
	written.reset()
	storesBefore, zonesBefore := pool.InUse()
	err := caddy.Validate(c)
	if stores, zones := pool.InUse(); stores != storesBefore || zones != zonesBefore {
		t.Errorf("%d stores and %d zones are left behind", stores-storesBefore, zones-zonesBefore)
	}
	if err != nil {
		return err.Error()
	}
	return strings.Join(append([]string{"ok"}, written.warnings(t)...), "\n")
}

// written is what the config under test has logged.
var written log

func init() { caddy.RegisterModule(&written) }

type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (*log) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.writers.golden", New: func() caddy.Module { return &written }}
}
func (*log) String() string                        { return "golden" }
func (*log) WriterKey() string                     { return "golden" }
func (l *log) OpenWriter() (io.WriteCloser, error) { return l, nil }
func (*log) Close() error                          { return nil }

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *log) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// warnings returns the lines of the limiter above level INFO.
func (l *log) warnings(t *testing.T) (lines []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		fields := make(map[string]any)
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		level := fields["level"]
		if !strings.HasPrefix(fmt.Sprint(fields["logger"]), "http.handlers.rate_limit") || level == "debug" || level == "info" {
			continue
		}
		text := fmt.Sprintf("%v: %v", level, fields["msg"])
		for _, name := range []string{"level", "ts", "logger", "msg"} {
			delete(fields, name)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			text += fmt.Sprintf(" %s=%v", name, fields[name])
		}
		lines = append(lines, text)
	}
	return lines
}

// blocks have options. Each block has an option here that does not exist, so that its error lists
// those that do.
var blocks = map[string]string{
	"directive":    ":80 {\n\trate_limit {\n\t\t?\n\t}\n}\n",
	"distributed":  ":80 {\n\trate_limit {\n\t\tdistributed {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"global":       "{\n\trate_limit {\n\t\t?\n\t}\n}\n",
	"zone":         ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"plan":         ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tplan {x} {\n\t\t\t\tp {\n\t\t\t\t\t?\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"charge":       ":80 {\n\trate_limit {\n\t\tzone z {\n\t\t\tcharge on_response {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
	"store memory": ":80 {\n\trate_limit {\n\t\tstore memory {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"store redis":  ":80 {\n\trate_limit {\n\t\tstore redis {\n\t\t\t?\n\t\t}\n\t}\n}\n",
	"tls":          ":80 {\n\trate_limit {\n\t\tstore redis {\n\t\t\ttls {\n\t\t\t\t?\n\t\t\t}\n\t\t}\n\t}\n}\n",
}

// TestGoldenOptions: every option is in a golden file, and twice in one about that error.
func TestGoldenOptions(t *testing.T) {
	adapted, twice := make(map[use]bool), make(map[use]bool)
	for _, g := range goldens(t, "adapt/*.caddyfiletest") {
		for u, times := range uses(t, g.input) {
			u.instance = 0
			adapted[u] = true
			twice[u] = twice[u] || times > 1
		}
	}
	for _, g := range goldens(t, "errors/*.txt") {
		for u, times := range uses(t, g.input) {
			u.instance = 0
			twice[u] = twice[u] || times > 1 && strings.Contains(g.want, " already specified")
		}
	}
	for block, text := range blocks {
		_, _, err := adapt(text)
		_, list, found := strings.Cut(fmt.Sprint(err), "must be one of ")
		if !found {
			t.Fatalf("%s does not list its options: %v", block, err)
		}
		list, _, _ = strings.Cut(list, ", at ")
		for option := range strings.SplitSeq(list, ", ") {
			u := use{block: block, option: option}
			if !adapted[u] {
				t.Errorf("option %s of %s stands in no file of testdata/adapt", option, block)
			}
			if !twice[u] {
				t.Errorf("option %s of %s is given twice in no file of testdata/errors", option, block)
			}
		}
	}
}

// use is an option in a block of a Caddyfile.
type use struct {
	block, option string
	instance      int // the number of the block, counted from the top of the file
}

// uses counts the options in a Caddyfile's blocks.
func uses(t *testing.T, text string) map[use]int {
	t.Helper()
	tokens, err := caddyfile.Tokenize([]byte(text), "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[use]int)
	open := []use{{}} // the blocks around the line, outermost first
	for opened := 0; len(tokens) > 0; {
		end := 1
		for end < len(tokens) && tokens[end].Line == tokens[0].Line {
			end++
		}
		line := tokens[:end]
		tokens = tokens[end:]
		if line[0].Text == "}" && len(open) > 1 {
			open = open[:len(open)-1]
			continue
		}
		u := use{block: open[len(open)-1].block, option: line[0].Text, instance: open[len(open)-1].instance}
		found[u]++
		if line[len(line)-1].Text == "{" {
			opened++
			open = append(open, use{block: blockOf(u.block, line), instance: opened})
		}
	}
	return found
}

// blockOf names the block that a line begins.
func blockOf(around string, line []caddyfile.Token) string {
	switch name := line[0].Text; {
	case name == "{":
		return "global options"
	case name == "rate_limit" && around == "global options":
		return "global"
	case name == "rate_limit":
		return "directive"
	case name == "store" && len(line) > 1:
		return "store " + line[1].Text
	case name == "plan" && around == "zone":
		return "plans"
	case around == "plans":
		return "plan"
	case (name == "zone" || name == "distributed") && around == "directive", name == "charge" && around == "zone", name == "tls" && around == "store redis":
		return name
	}
	return "other"
}
