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

// doctor checks the instances, prints what is wrong, and returns the worst level. An instance that could not be checked is an
// error.
func (c *instance) doctor() (worst string, err error) {
	answers, done, err := askEach[adminapi.Diagnosis](c, "doctor")
	if err != nil {
		return "", err
	}
	answers = slices.DeleteFunc(answers, func(a answer[adminapi.Diagnosis]) bool {
		if len(a.value.Checks) > 0 {
			return false
		}
		err = errors.Join(err, errors.New(a.of+": the answer has no checks; does that Caddy have another version?"))
		return true
	})
	if len(answers) == 0 {
		return "", err
	}
	problems := c.problems(answers)
	if len(problems) > 0 {
		worst = problems[0].Level
	}
	if !done {
		fmt.Fprint(c.out, c.verdict(problems, len(answers)))
		c.printNotes()
	}
	return worst, err
}

// problem is a finding, and the zones and instances that have it.
type problem struct {
	adminapi.Finding
	zones, instances []string
}

// figure matches what may differ between instances that have found the same.
var figure = regexp.MustCompile(`\d[\d.]*( ?([kMG]B|[mµ]?s|m))?`)

// isLike reports whether two instances have found the same. The figures may differ.
func (p *problem) isLike(other *problem) bool {
	a, b := p.Finding, other.Finding
	a.Found, b.Found = figure.ReplaceAllString(a.Found, ""), figure.ReplaceAllString(b.Found, "")
	return a == b && slices.Equal(p.zones, other.zones)
}

// problems returns what is wrong, the worst first. What several zones or instances have in common is one problem.
func (c *instance) problems(answers []answer[adminapi.Diagnosis]) (all []*problem) {
	if c.view != nil {
		for _, found := range c.view.Found {
			all = append(all, &problem{Finding: found})
		}
	}
	for _, a := range answers {
		var own []*problem
		for _, found := range a.value.Findings {
			zone := found.Zone
			found.Zone = ""
			i := slices.IndexFunc(own, func(p *problem) bool { return p.Finding == found && zone != "" })
			if i < 0 {
				i, own = len(own), append(own, &problem{Finding: found, instances: []string{a.of}})
			}
			if zone != "" && !slices.Contains(own[i].zones, zone) {
				own[i].zones = append(own[i].zones, zone)
			}
		}
		for _, p := range own {
			if i := slices.IndexFunc(all, func(known *problem) bool { return known.instances != nil && p.isLike(known) }); i >= 0 {
				all[i].instances = append(all[i].instances, a.of)
			} else {
				all = append(all, p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *problem) int { return adminapi.WorseFirst(a.Finding, b.Finding) })
	return all
}

// maxLines is how many lines a person sees at once.
const maxLines = 25

// verdict writes what is wrong, in a terminal no more than fits in it.
func (c *instance) verdict(problems []*problem, instances int) string {
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
		more := c.lines(p, instances)
		if c.terminal && i > 0 && len(lines)+len(more) >= maxLines {
			lines = append(lines, fmt.Sprintf("%d more are in --json.", len(problems)-i))
			break
		}
		lines = append(lines, more...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// lines returns a problem with what to do.
func (c *instance) lines(p *problem, instances int) (lines []string) {
	const indent = "    "
	texts := []string{p.Level + " " + p.Check + ": " + p.whose(instances), p.Found}
	if fix := p.Fix.String(); fix != "" {
		texts = append(texts, "fix: "+fix)
	}
	for _, text := range texts {
		for _, line := range wrapped(text, cmp.Or(c.width, textWidth)-len(indent)) {
			lines = append(lines, indent+line)
		}
	}
	lines[0] = strings.Replace(strings.TrimPrefix(lines[0], indent), p.Level, c.colored(p.Level), 1)
	return lines
}

// whose names what a problem is about, and the instances unless all have it.
func (p *problem) whose(instances int) string {
	about := "config"
	switch {
	case p.instances == nil:
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
	if len(p.instances) > 0 && len(p.instances) < instances {
		about += " on " + strings.Join(p.instances, ", ")
	}
	return about
}
