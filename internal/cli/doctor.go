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

func doctorCommand() *cobra.Command {
	cmd := ofFleet(&cobra.Command{
		Use:   "doctor",
		Short: "Finds what is wrong with limits, zones and stores",
		Long: `
Checks the addresses of clients, the zones and the stores of a running Caddy, and whether
the instances that share a store agree. It charges nothing, and takes some seconds for a
fleet. Each check is ok, warn, fail, or unknown if it could not be made. What fails comes
first, with what to do, and what is ok is not listed.

The exit code is 0 if no check fails, 1 if the Caddy could not be checked, 2 if a
check fails, and with --strict 3 if one warns and none fails.
`,
		Example: "  caddy rate-limit doctor\n  caddy rate-limit doctor --strict --json",
		Args:    cobra.NoArgs,
	})
	flags := cmd.Flags()
	strict := flags.Bool("strict", false, "Exit with 3 if a check warns")
	fails, warns := false, false
	diagnose := onFleet(func(f *fleet, _ []string) error {
		worst, err := f.doctor()
		fails, warns = fails || worst == adminapi.LevelFail, warns || worst == adminapi.LevelWarn
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := diagnose(cmd, args)
		switch {
		case err != nil:
			return err
		case fails:
			return endWith(cmd, exitFails)
		case warns && *strict:
			return endWith(cmd, exitWarns)
		}
		return nil
	}
	return cmd
}

// doctor checks the instances, prints what is wrong, and returns the worst level. An instance that could not be checked is an
// error.
func (f *fleet) doctor() (worst string, err error) {
	answers := fetchAll[adminapi.Diagnosis](f, "doctor", nil)
	good, err := answered(f, answers)
	good = slices.DeleteFunc(good, func(a answer[adminapi.Diagnosis]) bool {
		if len(a.value.Checks) == 0 {
			err = errors.Join(err, errors.New(f.mark(a.of)+"the answer has no checks; does that Caddy have another version?"))
		}
		return len(a.value.Checks) == 0
	})
	problems := f.problems(good)
	if len(problems) > 0 {
		worst = problems[0].Level
	}
	if f.json || len(good) == 0 {
		return worst, errors.Join(printAnswers(f, answers), err)
	}
	_, failed := fmt.Fprint(f.out, f.verdict(problems))
	f.printNotes()
	return worst, errors.Join(failed, err)
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
func (f *fleet) problems(good []answer[adminapi.Diagnosis]) (all []*problem) {
	if f.view != nil {
		for _, found := range f.view.Found {
			all = append(all, &problem{Finding: found})
		}
	}
	for _, a := range good {
		var own []*problem
		for _, found := range a.value.Findings {
			zone := found.Zone
			found.Zone = ""
			i := slices.IndexFunc(own, func(p *problem) bool { return p.Finding == found && zone != "" })
			if i < 0 {
				i, own = len(own), append(own, &problem{Finding: found, instances: []string{a.of.address}})
			}
			if zone != "" && !slices.Contains(own[i].zones, zone) {
				own[i].zones = append(own[i].zones, zone)
			}
		}
		for _, p := range own {
			if i := slices.IndexFunc(all, func(known *problem) bool { return known.instances != nil && p.isLike(known) }); i >= 0 {
				all[i].instances = append(all[i].instances, a.of.address)
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
func (f *fleet) verdict(problems []*problem) string {
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
	if f.view != nil && len(f.view.Instances) > 1 {
		text += fmt.Sprintf(" in a fleet of %d", len(f.view.Instances))
	}
	lines := []string{text + "."}
	if len(problems) > 0 {
		lines = append(lines, "")
	}
	for i, p := range problems {
		more := f.lines(p)
		if f.terminal && i > 0 && len(lines)+len(more) >= maxLines {
			lines = append(lines, fmt.Sprintf("%d more are in --json.", len(problems)-i))
			break
		}
		lines = append(lines, more...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// lines returns a problem with what to do.
func (f *fleet) lines(p *problem) (lines []string) {
	const indent = "    "
	texts := []string{p.Level + " " + p.Check + ": " + f.whose(p), p.Found}
	if fix := p.Fix.String(); fix != "" {
		texts = append(texts, "fix: "+fix)
	}
	for _, text := range texts {
		for _, line := range wrapped(printable(text), cmp.Or(f.width, textWidth)-len(indent)) {
			lines = append(lines, indent+line)
		}
	}
	lines[0] = strings.Replace(strings.TrimPrefix(lines[0], indent), p.Level, f.colored(p.Level), 1)
	return lines
}

// whose names what a problem is about, and the instances unless all have it.
func (f *fleet) whose(p *problem) string {
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
	if len(p.instances) > 0 && len(p.instances) < len(f.caddys) {
		about += " on " + strings.Join(p.instances, ", ")
	}
	return about
}
