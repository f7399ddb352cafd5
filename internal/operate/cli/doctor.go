package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// The exit codes of doctor. As with all commands, 1 says that there is no answer.
const (
	exitFails = 2
	exitWarns = 3 // with --strict
)

func doctorCommand(cmd *cobra.Command) {
	ofFleet(cmd)
	strict := cmd.Flags().Bool("strict", false, "Exit with 3 if a check warns")
	code := 0
	asks(cmd, func(c *instance, _ []string) error {
		worst, err := c.doctor()
		switch {
		case worst == adminapi.LevelFail:
			code = exitFails
		case worst == adminapi.LevelWarn && *strict && code == 0:
			code = exitWarns
		}
		return err
	})
	diagnose := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := diagnose(cmd, args); err != nil {
			return err
		}
		return endWith(cmd, code)
	}
}

// doctor checks the instances, prints what is wrong, and returns the worst level.
func (c *instance) doctor() (worst string, err error) {
	d := new(adminapi.Diagnosis)
	done, err := c.ask("doctor", nil, d)
	switch {
	case err != nil:
		return "", err
	case d.Level == "":
		return "", errors.New("the answer has no level; does that Caddy have another version?")
	case !done:
		fmt.Fprint(c.out, c.verdict(d.Findings))
		c.printNotes()
	}
	return d.Level, nil
}

// maxLines is how many lines a person sees at once.
const maxLines = 25

// verdict writes what is wrong, in a terminal no more than fits in it.
func (c *instance) verdict(all []adminapi.Finding) string {
	counts := make(map[string]int)
	for _, f := range all {
		counts[f.Level]++
	}
	text := "Nothing is wrong"
	if counts[adminapi.LevelFail]+counts[adminapi.LevelWarn] > 0 {
		text = fmt.Sprintf("%d fail and %d warn", counts[adminapi.LevelFail], counts[adminapi.LevelWarn])
	} else if counts[adminapi.LevelUnknown] > 0 {
		text += " as far as could be checked"
	}
	if c.view != nil && len(c.view.Instances) > 1 {
		text += fmt.Sprintf(" in a fleet of %d", len(c.view.Instances))
	}
	lines := []string{text + "."}
	if len(all) > 0 {
		lines = append(lines, "")
	}
	for i := range all {
		more := c.lines(&all[i])
		if c.terminal && i > 0 && len(lines)+len(more) >= maxLines {
			lines = append(lines, fmt.Sprintf("%d more are in --json.", len(all)-i))
			break
		}
		lines = append(lines, more...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// lines returns a finding with what to do.
func (c *instance) lines(f *adminapi.Finding) (lines []string) {
	const indent = "    "
	texts := []string{f.Level + " " + f.Check + ": " + whose(f), f.Found}
	if fix := f.Fix.String(); fix != "" {
		texts = append(texts, "fix: "+fix)
	}
	for i, text := range texts {
		lines = append(lines, say.Wrap(indent[:min(i, 1)*len(indent)], indent, text, cmp.Or(c.width, textWidth))...)
	}
	return lines
}

// whose names what a finding is about.
func whose(f *adminapi.Finding) string {
	switch f.Of {
	case "":
		return "config"
	case "zone":
		return enumerate(f.Of, few(f.Names))
	}
	return enumerate(words(f.Of), f.Names)
}
