package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
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

// problem is a finding, and the zones and instances that have it.
type problem struct {
	adminapi.Finding
	zones, instances []string
}

// figure matches what may differ between instances that have found the same.
var figure = regexp.MustCompile(`\d[\d.]*( ?([KMG]iB|[mµ]?s|m))?`)

// isLike reports whether two instances have found the same. The figures may differ.
func (p *problem) isLike(other *problem) bool {
	a, b := p.Finding, other.Finding
	a.Found, b.Found = figure.ReplaceAllString(a.Found, ""), figure.ReplaceAllString(b.Found, "")
	return a == b && slices.Equal(p.zones, other.zones)
}

// problems returns what is wrong, the worst first. What several zones or instances have in common is one problem.
func problems(findings []adminapi.Finding) (all []*problem) {
	var own []*problem // of each instance
	for _, found := range findings {
		p := &problem{Finding: found}
		if p.Zone = ""; found.Zone != "" {
			p.zones = []string{found.Zone}
		}
		i := slices.IndexFunc(own, func(known *problem) bool { return known.Finding == p.Finding && known.zones != nil && p.zones != nil })
		if i < 0 {
			own = append(own, p)
		} else if !slices.Contains(own[i].zones, found.Zone) {
			own[i].zones = append(own[i].zones, found.Zone)
		}
	}
	for _, p := range own {
		on := p.Instance
		if p.Instance = ""; on != "" {
			p.instances = []string{on}
		}
		i := slices.IndexFunc(all, func(known *problem) bool { return known.instances != nil && on != "" && p.isLike(known) })
		if i < 0 {
			all = append(all, p)
		} else {
			all[i].instances = append(all[i].instances, on)
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
	if n := c.fleetSize(); n > 1 {
		text += fmt.Sprintf(" in a fleet of %d", n)
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
	texts := []string{p.Level + " " + p.Check + ": " + c.whose(p), p.Found}
	if fix := p.Fix.String(); fix != "" {
		texts = append(texts, "fix: "+fix)
	}
	for i, text := range texts {
		lines = append(lines, say.Wrap(indent[:min(i, 1)*len(indent)], indent, text, cmp.Or(c.width, textWidth))...)
	}
	lines[0] = strings.Replace(lines[0], p.Level, c.colored(p.Level), 1)
	return lines
}

// fleetSize returns how many instances the answer is about.
func (c *instance) fleetSize() int {
	if c.view == nil {
		return 1
	}
	return len(c.view.Instances)
}

// whose names what a problem is about, and the instances unless all have it.
func (c *instance) whose(p *problem) string {
	about := "config"
	switch {
	case p.instances == nil && c.fleetSize() > 1:
		about = "fleet"
	case len(p.zones) > 0:
		about = enumerate("zone", few(p.zones))
	case p.Server != "":
		about = "server " + shell.Word(p.Server)
	case p.Adaptive != "":
		about = "adaptive_concurrency " + shell.Word(p.Adaptive)
	case p.Store != "":
		about = "store " + p.Store
	}
	others := func(m adminapi.Instance) bool {
		return (m.State == adminapi.StateHere || m.State == adminapi.StateReports) && !slices.Contains(p.instances, m.Name)
	}
	if p.instances != nil && slices.ContainsFunc(c.view.Instances, others) {
		about += " on " + strings.Join(p.instances, ", ")
	}
	return about
}
