package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
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
first, with what to do. What is ok is only counted; --json lists it.

The exit code is 0 if no check fails, 1 if the Caddy could not be checked, 2 if a
check fails, and with --strict 3 if one warns and none fails.
`,
		Example: "  caddy rate-limit doctor\n  caddy rate-limit doctor --strict --json",
		Args:    cobra.NoArgs,
	})
	flags := cmd.Flags()
	strict := flags.Bool("strict", false, "Exit with 3 if a check warns")
	worst := adminapi.LevelOK
	diagnose := onFleet(func(f *fleet, _ []string) error {
		level, err := f.doctor()
		worst = worse(worst, level)
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := diagnose(cmd, args); err != nil {
			return err
		}
		return exitWith(cmd, worst, *strict)
	}
	return cmd
}

// doctor checks the instances, prints what it finds, and returns the worst level. What all of them have found is
// printed once. An instance that could not be checked is an error.
func (f *fleet) doctor() (level string, err error) {
	answers := fetchAll[adminapi.Diagnosis](f, "doctor", nil)
	good, err := answered(f, answers)
	level = adminapi.LevelOK
	for _, a := range good {
		level = worse(level, a.value.Level)
		if len(a.value.Findings) == 0 {
			err = errors.Join(err, errors.New(f.mark(a.of)+"the answer has no findings; does that Caddy have another version?"))
		}
	}
	sections := f.sections(good)
	for _, s := range sections { // instances do not count the comparison in their level
		level = worse(level, s.level())
	}
	if f.json {
		return level, errors.Join(printAnswers(f, answers), err)
	}
	instances := len(good)
	if f.view != nil {
		instances = max(instances, len(f.view.Instances))
	}
	_, failed := fmt.Fprint(f.out, f.verdict(sections, instances))
	f.printNotes()
	return level, errors.Join(failed, err)
}

// section is what was found about the same instances.
type section struct {
	of       string // whose it is; empty if there is just one instance
	findings []adminapi.Finding
}

// ofComparison is the title of what comparing the instances has found.
const ofComparison = "fleet"

// level returns the worst level of the findings, of those that decide an exit code.
func (s section) level() string {
	level := adminapi.LevelOK
	for i := range s.findings {
		level = worse(level, s.findings[i].Level)
	}
	return level
}

// worse returns the worse of two levels, of those that decide an exit code.
func worse(a, b string) string {
	for _, level := range []string{adminapi.LevelFail, adminapi.LevelWarn} {
		if a == level || b == level {
			return level
		}
	}
	return a
}

// sections returns what was found, the worst first: by comparing the instances, by all of them, and by each of them alone.
func (f *fleet) sections(good []answer[adminapi.Diagnosis]) (all []section) {
	compared := f.view != nil && len(f.view.Found) > 0
	if compared {
		found := slices.Clone(f.view.Found)
		slices.SortStableFunc(found, worseFirst)
		all = append(all, section{ofComparison, found})
	}
	common := commonFindings(good)
	if len(common) > 0 {
		all = append(all, section{fmt.Sprintf("all %d instances", len(good)), common})
	}
	for _, a := range good {
		own := slices.DeleteFunc(slices.Clone(a.value.Findings), func(one adminapi.Finding) bool {
			// What is well in the zones of other instances is not reported.
			return compared && one.Zone != "" && one.Level == adminapi.LevelOK ||
				slices.ContainsFunc(common, func(c adminapi.Finding) bool { return same(c, one) })
		})
		if len(own) == 0 {
			continue
		}
		of := ""
		if !f.isOne() {
			of = "caddy " + a.of.address
		}
		all = append(all, section{of, own})
	}
	slices.SortStableFunc(all, func(a, b section) int { return rank(a.level()) - rank(b.level()) })
	return all
}

// verdict writes all sections. What was found about several instances is summed up first.
func (f *fleet) verdict(sections []section, instances int) string {
	var b strings.Builder
	if len(sections) > 1 {
		counts := make(map[string]int)
		for _, s := range sections {
			for i := range s.findings {
				counts[s.findings[i].Level]++
			}
		}
		verdict := fmt.Sprintf("%d fail and %d warn", counts[adminapi.LevelFail], counts[adminapi.LevelWarn])
		if counts[adminapi.LevelFail]+counts[adminapi.LevelWarn] == 0 {
			verdict = "Nothing is wrong"
		}
		fmt.Fprintf(&b, "%s in a fleet of %d.\n", verdict, instances)
	}
	for _, s := range sections {
		if s.of == ofComparison {
			s.findings = slices.DeleteFunc(slices.Clone(s.findings), isOK)
		}
		if len(s.findings) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		if s.of == ofComparison {
			b.WriteString(s.of + "\n")
			for i := range s.findings {
				f.finding(&b, &s.findings[i])
			}
			continue
		}
		if s.of != "" {
			fmt.Fprintf(&b, "%s\n\n", s.of)
		}
		f.diagnosis(&b, s.findings)
	}
	return b.String()
}

// figure matches what may differ between instances that have found the same.
var figure = regexp.MustCompile(`\d[\d.]*( ?([kMG]B|[mµ]?s|m))?`)

// same reports whether two instances have found the same. The figures may differ, and all words of what is ok.
func same(a, b adminapi.Finding) bool {
	switch {
	case a.Level == adminapi.LevelOK:
		a.Found = b.Found
	case figure.ReplaceAllString(a.Found, "") == figure.ReplaceAllString(b.Found, ""):
		a.Found = b.Found
	}
	return a == b
}

// commonFindings returns the findings that all instances have, in the order and the words of the first.
func commonFindings(answers []answer[adminapi.Diagnosis]) (common []adminapi.Finding) {
	if len(answers) < 2 {
		return nil
	}
	for _, one := range answers[0].value.Findings {
		if !slices.ContainsFunc(answers, func(a answer[adminapi.Diagnosis]) bool {
			return !slices.ContainsFunc(a.value.Findings, func(f adminapi.Finding) bool { return same(f, one) })
		}) {
			common = append(common, one)
		}
	}
	return common
}

// exitWith makes the command end with the exit code of a level.
func exitWith(cmd *cobra.Command, level string, strict bool) error {
	code := 0
	switch {
	case level == adminapi.LevelFail:
		code = exitFails
	case level == adminapi.LevelWarn && strict:
		code = exitWarns
	}
	return endWith(cmd, code)
}

// diagnosis writes findings, grouped by what they are about. What is ok is only counted.
func (e *screen) diagnosis(b *strings.Builder, findings []adminapi.Finding) {
	counts := make(map[string]int)
	for _, f := range findings {
		counts[f.Level]++
	}
	if counts[adminapi.LevelOK] == len(findings) {
		b.WriteString("Nothing is wrong.\n")
	}
	for _, group := range groups(findings) {
		group.findings = slices.DeleteFunc(group.findings, isOK)
		if len(group.findings) == 0 {
			continue
		}
		for _, line := range wrapped(group.about, cmp.Or(e.width, findingWidth)) {
			b.WriteString(line + "\n")
		}
		for _, f := range group.findings {
			e.finding(b, &f)
		}
	}
	fmt.Fprintf(b, "\n%d ok, %d warn, %d fail", counts[adminapi.LevelOK], counts[adminapi.LevelWarn], counts[adminapi.LevelFail])
	if n := counts[adminapi.LevelUnknown]; n > 0 {
		fmt.Fprintf(b, ", %d unknown", n)
	}
	b.WriteString("\n")
}

// levels are the levels of findings, the worst first.
var levels = []string{adminapi.LevelFail, adminapi.LevelWarn, adminapi.LevelUnknown, adminapi.LevelOK}

// rank is the place of a level among them.
func rank(level string) int { return slices.Index(levels, level) }

func isOK(f adminapi.Finding) bool { return f.Level == adminapi.LevelOK }

func worseFirst(a, b adminapi.Finding) int { return rank(a.Level) - rank(b.Level) }

const (
	// findingWidth is the width to which findings are wrapped without a terminal.
	findingWidth = 80

	// findingIndent is where the text of a finding begins.
	findingIndent = len("  unknown  on_store_error  ")
)

// finding prints a finding, and below it what to do.
func (e *screen) finding(b *strings.Builder, f *adminapi.Finding) {
	width := cmp.Or(e.width, findingWidth) - findingIndent
	lines := wrapped(printable(f.Found), width)
	fmt.Fprintf(b, "  %s%s  %-14s  %s\n", e.colored(f.Level), strings.Repeat(" ", len("unknown")-min(len(f.Level), len("unknown"))), printable(f.Check), lines[0])
	lines = lines[1:]
	if f.Fix != (advice.Text{}) {
		lines = append(lines, wrapped("fix: "+printable(f.Fix.String()), width)...)
	}
	for _, line := range lines {
		b.WriteString(strings.Repeat(" ", findingIndent) + line + "\n")
	}
}

// wrapped breaks a text into lines of at most this width, at least one. Longer words are cut.
func wrapped(text string, width int) (lines []string) {
	width = max(width, 20)
	line := ""
	for word := range strings.FieldsSeq(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// printable escapes what a terminal would interpret. Errors of servers may have anything in them.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r), r == '\n':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
