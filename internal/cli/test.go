package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
)

// The exit codes of test. As with all commands, 1 says that there is no answer.
const (
	exitCaseFails     = 2
	exitChangeMissed  = 3
	defaultCases      = adjacentFile + cases.Extension
	watchCasesEvery   = 300 * time.Millisecond
	endOfScreen       = "\x1b[2J\x1b[H"
	casesFileExpected = "name a file of cases, such as " + defaultCases
)

func testCommand(cmd *cobra.Command) {
	flags := cmd.Flags()
	t := new(tester)
	flags.StringVar(&t.pattern, "run", "", "Carry out only the cases whose name matches this regular expression")
	flags.StringVar(&t.junit, "junit", "", "Also write the results to this file as JUnit XML")
	flags.BoolVar(&t.mutate, "mutate", false, "Also try changes of the config, and tell which of them no case notices")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "Also print the changes that are noticed, with the case that notices")
	flags.BoolVar(&t.watch, "watch", false, "Carry out the cases again whenever a file changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t.cmd, t.screen, t.args = cmd, newScreen(cmd), args
		if t.watch {
			return t.watchFiles()
		}
		code, err := t.test()
		if err != nil || code == 0 {
			return err
		}
		return endWith(cmd, code)
	}
}

// endWith ends a command with an exit code, whose reason is in what it has printed.
func endWith(cmd *cobra.Command, code int) error {
	cmd.SilenceErrors = true
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
}

// tester carries out the command test.
type tester struct {
	*screen
	cmd                    *cobra.Command
	args                   []string
	pattern, junit         string
	mutate, verbose, watch bool
}

// test carries out all cases once, and returns the exit code.
func (t *tester) test() (code int, err error) {
	began := time.Now()
	o, err := t.options()
	if err != nil {
		return 0, err
	}
	names, err := findCases(t.args)
	if err != nil {
		return 0, err
	}
	configs, files, err := t.group(names)
	if err != nil {
		return 0, err
	}
	r := &cases.Report{Cases: []cases.Result{}}
	for _, config := range configs {
		if err := t.testConfig(config, files[config], o, r); err != nil {
			return 0, err
		}
	}
	if len(r.Cases) == 0 {
		return 0, fmt.Errorf("no case matches --run %q", t.pattern)
	}
	r.Took = time.Since(began)
	if err := t.report(r); err != nil {
		return 0, err
	}
	found, accepted := r.Noticed()
	switch {
	case r.Failed > 0:
		return exitCaseFails, nil
	case found+accepted < len(r.Changes):
		return exitChangeMissed, nil
	}
	return 0, nil
}

// testConfig carries out the cases of one config. Changes are tried only if no case fails without them.
func (t *tester) testConfig(name string, files []*cases.File, o *cases.Options, r *cases.Report) error {
	config, err := t.config(name, files[0].Adapter)
	if err != nil {
		return err
	}
	results, err := cases.Run(config, files, o)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.Cases = append(r.Cases, results...)
	failed := 0
	for i := range results {
		if len(results[i].Failures) > 0 {
			failed++
		}
	}
	r.Failed += failed
	if !t.mutate || failed > 0 || len(results) == 0 {
		return nil
	}
	changes, err := cases.Mutate(config, files, o)
	for i := range changes {
		changes[i].Config = name
	}
	r.Changes = append(r.Changes, changes...)
	return err
}

// config returns a config as JSON. The flag --config is in place of all others.
func (t *tester) config(name, adapter string) ([]byte, error) {
	if given, _ := t.cmd.Flags().GetString("config"); given != "" {
		return loadConfig(t.cmd)
	}
	return readConfig(name, adapter)
}

// options returns the options of the cases.
func (t *tester) options() (*cases.Options, error) {
	o := new(cases.Options)
	if t.pattern != "" {
		pattern, err := regexp.Compile(t.pattern)
		if err != nil {
			return nil, fmt.Errorf("--run: %w", err)
		}
		o.Run = pattern.MatchString
	}
	if t.json {
		return o, nil
	}
	o.Told = func(r cases.Result) { _ = r.WriteText(t.out, t.colors(), t.breaks()) }
	o.Tried = func(c cases.Change) {
		if t.verbose && c.FoundBy != "" {
			fmt.Fprintf(t.out, "found %s: %s\n", c.Change, c.FoundBy)
		}
		_ = c.WriteText(t.out, t.colors(), t.breaks())
	}
	return o, nil
}

func (t *tester) colors() cases.Colors {
	if t.color {
		return cases.Colors{Good: green, Bad: red, Plain: noColor}
	}
	return cases.Colors{}
}

// breaks returns the width at which lines are broken.
func (t *tester) breaks() int {
	if t.width == 0 {
		return cases.Width
	}
	return t.width
}

// report prints the summary, and writes the file for other programs.
func (t *tester) report(r *cases.Report) error {
	if t.junit != "" {
		var b bytes.Buffer
		if err := r.WriteJUnit(&b); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
		if err := os.WriteFile(t.junit, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if t.json {
		return t.printJSON(r)
	}
	return r.WriteSummary(t.out)
}

// findCases returns the names of the files of cases that some arguments name.
func findCases(args []string) (names []string, err error) {
	if len(args) == 0 {
		if _, err := os.Stat(defaultCases); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no %s here: %s", defaultCases, casesFileExpected)
		}
		return []string{defaultCases}, nil
	}
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			names = append(names, arg)
			continue
		}
		before := len(names)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, cases.Extension) {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(names) == before {
			return nil, fmt.Errorf("%s has no file whose name ends in %s: %s", arg, cases.Extension, casesFileExpected)
		}
	}
	return names, nil
}

// group parses files of cases, and returns them by their config.
func (t *tester) group(names []string) (configs []string, files map[string][]*cases.File, err error) {
	files = make(map[string][]*cases.File)
	given, _ := t.cmd.Flags().GetString("config")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		f, err := cases.Parse(name, text)
		if err != nil {
			return nil, nil, err
		}
		config := given
		if config == "" {
			config = f.ConfigOf()
		}
		if config == name {
			return nil, nil, fmt.Errorf("%s: its config is not clear from its name: write config and the name of the file at its top, or --config", name)
		}
		if files[config] == nil {
			configs = append(configs, config)
		}
		files[config] = append(files[config], f)
	}
	return configs, files, nil
}

// watchFiles carries out the cases whenever a file of them, or its config, changes.
func (t *tester) watchFiles() error {
	var before []version
	for {
		now := t.changed()
		if !slices.Equal(before, now) || before == nil {
			before = now
			if t.terminal {
				fmt.Fprint(t.out, endOfScreen)
			}
			if _, err := t.test(); err != nil {
				fmt.Fprintln(t.err, "Error:", err)
			}
		}
		select {
		case <-t.cmd.Context().Done():
			return nil
		case <-time.After(watchCasesEvery):
		}
	}
}

// version tells one content of a file from another. The size is for a file that is read while it is written, because
// its time may be the same.
type version struct{ at, size int64 }

// changed returns the version of each file; a file that is missing has none.
func (t *tester) changed() []version {
	versions := []version{}
	names, _ := findCases(t.args)
	given, _ := t.cmd.Flags().GetString("config")
	for _, name := range append(slices.Clone(names), given) {
		all := []string{name}
		if text, err := os.ReadFile(name); err == nil && name != given {
			if f, err := cases.Parse(name, text); err == nil {
				all = append(all, f.ConfigOf())
			}
		}
		for _, file := range all {
			var of version
			if info, err := os.Stat(file); err == nil {
				of = version{info.ModTime().UnixNano(), info.Size()}
			}
			versions = append(versions, of)
		}
	}
	return versions
}
