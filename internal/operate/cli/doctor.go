package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
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
	case len(d.Checks) == 0:
		return "", errors.New("the answer has no checks; does that Caddy have another version?")
	case !done:
		fmt.Fprint(c.out, c.verdict(problems(d.Findings)))
		c.printNotes()
	}
	return d.Level, nil
}

// problem is a finding, and the zones or the instances that have it.
type problem struct {
	adminapi.Finding        // without their names
	of               string // "zone" or "instance"; empty if it is about something else
	names            []string
}

// problems returns what is wrong, the worst first. What several zones or instances have in common is one problem.
func problems(findings []adminapi.Finding) (all []*problem) {
	for _, found := range findings {
		p := &problem{Finding: found}
		switch {
		case found.Zone != "":
			p.of, p.names = "zone", []string{found.Zone}
		case found.Instance != "":
			p.of, p.names = "instance", []string{found.Instance}
		}
		p.Zone, p.Instance = "", ""
		i := slices.IndexFunc(all, func(known *problem) bool { return p.of != "" && known.of == p.of && known.Finding == p.Finding })
		if i < 0 {
			all = append(all, p)
		} else if !slices.Contains(all[i].names, p.names[0]) {
			all[i].names = append(all[i].names, p.names[0])
		}
	}
	return all
}

// maxLines is how many lines a person sees at once.
const maxLines = 25

// verdict writes what is wrong, in a terminal no more than fits in it.
func (c *instance) verdict(problems []*problem) string {
	counts := make(map[string]int)
	for _, p := range problems {
		counts[p.Level]++
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
	if len(problems) > 0 {
		lines = append(lines, "")
	}
	for i, p := range problems {
		more := c.lines(p)
		if c.terminal && i > 0 && len(lines)+len(more) >= maxLines {
			lines = append(lines, fmt.Sprintf("%d more are in --json.", len(problems)-i))
			break
		}
		lines = append(lines, more...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// lines returns a problem with what to do.
func (c *instance) lines(p *problem) (lines []string) {
	const indent = "    "
	texts := []string{p.Level + " " + p.Check + ": " + p.whose(), p.Found}
	if fix := p.Fix.String(); fix != "" {
		texts = append(texts, "fix: "+fix)
	}
	for i, text := range texts {
		lines = append(lines, say.Wrap(indent[:min(i, 1)*len(indent)], indent, text, cmp.Or(c.width, textWidth))...)
	}
	lines[0] = strings.Replace(lines[0], p.Level, c.colored(p.Level), 1)
	return lines
}

// whose names what a problem is about.
func (p *problem) whose() string {
	switch {
	case p.of == "zone":
		return enumerate(p.of, few(p.names))
	case p.of == "instance":
		return enumerate(p.of, p.names)
	case p.Server != "":
		return "server " + shell.Word(p.Server)
	case p.Adaptive != "":
		return "adaptive_concurrency " + shell.Word(p.Adaptive)
	case p.Store != "":
		return "store " + p.Store
	}
	return "config"
}
