package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
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
	exitCaseFails    = 2
	exitChangeMissed = 3
)

const defaultCases = adjacentFile + cases.Extension

func testCommand(cmd *cobra.Command) {
	flags := cmd.Flags()
	t := new(tester)
	flags.Func("run", "Carry out only the cases whose name matches this `regular expression`", func(text string) (err error) {
		t.pattern, err = regexp.Compile(text)
		return err
	})
	flags.StringVar(&t.junit, "junit", "", "Also write the results to this file as JUnit XML")
	flags.BoolVar(&t.mutate, "mutate", false, "Also try changes of the config, and tell which of them no case notices")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t.screen = newScreen(cmd)
		t.config, _ = flags.GetString("config")
		t.adapter, _ = flags.GetString("adapter")
		code, err := t.test(args)
		if err != nil {
			return err
		}
		return endWith(cmd, code)
	}
}

// endWith ends a command with an exit code, whose reason is in what it has printed.
func endWith(cmd *cobra.Command, code int) error {
	if code == 0 {
		return nil
	}
	cmd.SilenceErrors = true
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
}

// tester carries out the command test.
type tester struct {
	*screen
	config, adapter string         // by flags, instead of what the files say
	pattern         *regexp.Regexp // of the names of cases; nil for all
	junit           string
	mutate          bool
}

// test carries out all cases, prints the results, and returns the exit code.
func (t *tester) test(args []string) (code int, err error) {
	began := time.Now()
	files, err := t.parse(args)
	if err != nil {
		return 0, err
	}
	r := &cases.Report{Cases: []cases.Result{}}
	for _, config := range slices.Sorted(maps.Keys(files)) {
		if err := t.testConfig(config, files[config], r); err != nil {
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
func (t *tester) testConfig(name string, files []*cases.File, r *cases.Report) error {
	config, err := readConfig(name, t.adapter)
	if err != nil {
		return err
	}
	results, err := cases.Run(config, files)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.Cases = append(r.Cases, results...)
	before := r.Failed
	for i := range results {
		if len(results[i].Failures) > 0 {
			r.Failed++
		}
	}
	if !t.mutate || r.Failed > before || len(results) == 0 {
		return nil
	}
	changes, err := cases.Mutate(config, files)
	for i := range changes {
		changes[i].Config = name
	}
	r.Changes = append(r.Changes, changes...)
	return err
}

// report prints the summary, and writes the file for other programs.
func (t *tester) report(r *cases.Report) error {
	if t.junit != "" {
		file, err := os.Create(t.junit)
		if err == nil {
			err = errors.Join(r.WriteJUnit(file), file.Close())
		}
		if err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if t.json {
		return t.printJSON(r)
	}
	return r.WriteText(t.out, cmp.Or(t.width, cases.Width))
}

// parse parses the files of cases that the arguments name, and returns them by their config.
func (t *tester) parse(names []string) (map[string][]*cases.File, error) {
	if len(names) == 0 {
		names = []string{defaultCases}
	}
	files := make(map[string][]*cases.File)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%w: name a file of cases, such as %s", err, defaultCases)
		}
		f, err := cases.Parse(name, text)
		if err != nil {
			return nil, err
		}
		f.Cases = slices.DeleteFunc(f.Cases, func(c *cases.Case) bool {
			return t.pattern != nil && !t.pattern.MatchString(c.Name)
		})
		config := cmp.Or(t.config, strings.TrimSuffix(name, cases.Extension))
		if config == name {
			return nil, fmt.Errorf("%s: its config is not clear from its name: give it with --config", name)
		}
		files[config] = append(files[config], f)
	}
	return files, nil
}
