package vectors

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

const arrow = " -> "

// parser reads a file line by line.
type parser struct {
	file     *File
	from     time.Time
	limit    algorithms.Limit
	limited  bool             // whether the scenario has a limit yet
	taken    map[string]int64 // the times of the charges by name
	line     int
	scenario *Scenario
}

// Parse parses a file. A line that is unknown or not in the one form of [Step.Line] is an
// error.
func Parse(name, text string) (*File, error) {
	p := &parser{file: &File{Name: name, lines: strings.Split(text, "\n")}}
	for i, line := range p.file.lines {
		p.line = i
		if err := p.read(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w: %q", name, i+1, err, line)
		}
	}
	if len(p.file.Scenarios) == 0 {
		return nil, fmt.Errorf("%s: no scenario", name)
	}
	return p.file, nil
}

func (p *parser) read(line string) error {
	if p.line == 0 {
		return firstLine(line)
	}
	if line == "" || strings.HasPrefix(line, "# ") {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	if strings.Join(strings.Fields(line), " ") != line || rest == "" {
		return fmt.Errorf("must be words separated by one space")
	}
	switch word {
	case "algorithm":
		return p.algorithm(rest)
	case "scenario":
		if p.file.Algorithm == "" {
			return fmt.Errorf("there must be an algorithm first")
		}
		p.file.Scenarios = append(p.file.Scenarios, Scenario{Title: rest})
		p.scenario = &p.file.Scenarios[len(p.file.Scenarios)-1]
		p.from, p.limit, p.limited, p.taken = Start, algorithms.Limit{}, false, make(map[string]int64)
		return nil
	}
	if p.scenario == nil {
		return fmt.Errorf("there must be a scenario first")
	}
	switch word {
	case "beyond":
		p.scenario.BeyondModel = true
		if rest != "model" {
			return fmt.Errorf("must be: beyond model")
		}
		return nil
	case "from":
		return p.start(rest)
	case "limit":
		return p.setLimit(rest)
	}
	if !p.limited {
		return fmt.Errorf("there must be a limit first")
	}
	step := Step{Limit: p.limit, line: p.line}
	err := p.step(&step, word, rest)
	p.scenario.Steps = append(p.scenario.Steps, step)
	return err
}

// firstLine checks the first line of a file.
func firstLine(line string) error {
	words := strings.Fields(line)
	if len(words) < 4 || words[0] != "#" || !strings.HasPrefix(words[1], "algorithms/") ||
		words[2] != "and" || !strings.HasPrefix(words[3], "lua/") {
		return fmt.Errorf("the first line must be: # algorithms/<name>.go and lua/<name>.lua")
	}
	return nil
}

func (p *parser) algorithm(name string) error {
	if p.file.Algorithm != "" {
		return fmt.Errorf("there is an algorithm already")
	}
	p.file.Algorithm = name
	_, err := algorithms.Get(name)
	return err
}

func (p *parser) start(text string) (err error) {
	if len(p.scenario.Steps) > 0 {
		return fmt.Errorf("from must come before the first step")
	}
	p.from, err = time.Parse(time.RFC3339Nano, text)
	if err == nil && p.from.Format(time.RFC3339Nano) != text {
		return fmt.Errorf("must be written %s", p.from.Format(time.RFC3339Nano))
	}
	return err
}

// adjust parses the delta and the name of an adjustment.
func (p *parser) adjust(step *Step, words []string) (err error) {
	if len(words) != 2 {
		return fmt.Errorf("must be a delta and a name")
	}
	var ok bool
	step.Do, step.Name = Adjust, words[1]
	if step.Taken, ok = p.taken[step.Name]; !ok {
		return fmt.Errorf("there was no charge under that name")
	}
	if step.Cost, err = strconv.ParseInt(words[0], 10, 64); err == nil && strconv.FormatInt(step.Cost, 10) != words[0] {
		return fmt.Errorf("must be written %d, got %s", step.Cost, words[0])
	}
	return err
}

// step parses a request, a renewal or an adjustment. Its first word is the time.
func (p *parser) step(step *Step, at, rest string) error {
	d, err := duration(at)
	if err != nil {
		return err
	}
	step.At = p.from.Add(d).UnixMicro()
	if lease, ok := strings.CutPrefix(rest, "renew "); ok {
		step.Do = Renew
		return p.subject(step, strings.Fields(lease), 2)
	}
	if adjustment, ok := strings.CutPrefix(rest, "adjust "); ok {
		return p.adjust(step, strings.Fields(adjustment))
	}
	request, decision, ok := strings.Cut(rest, arrow)
	if want, ahead := strings.CutPrefix(request, "ahead "); ok && ahead {
		return p.ahead(step, strings.Fields(want), strings.Fields(decision))
	}
	if !ok {
		return fmt.Errorf("must be: at cost [name]%sallowed remaining retry next reset delay", arrow)
	}
	if err := p.subject(step, strings.Fields(request), 1); err != nil {
		return err
	}
	step.Want, err = parseDecision(strings.Fields(decision))
	return err
}

// ahead parses a charge ahead. An adjustment of it is of a charge that was made when the units last no more.
func (p *parser) ahead(step *Step, want, answer []string) (err error) {
	step.Do = Ahead
	if len(answer) != 2 {
		return fmt.Errorf("must be how many units, and how long they last")
	}
	if step.Want.Units, err = count(answer[0]); err != nil {
		return err
	}
	if step.Want.Lasts, err = duration(answer[1]); err != nil {
		return err
	}
	if err = p.subject(step, want, 1); step.Name != "" {
		p.taken[step.Name] = step.At + step.Want.Lasts.Microseconds()
	}
	return err
}

// subject parses a cost and a name. At least so many of the two words must be there.
func (p *parser) subject(step *Step, words []string, least int) (err error) {
	if len(words) < least || len(words) > 2 {
		return fmt.Errorf("must be a cost and a name")
	}
	if step.Cost, err = count(words[0]); err != nil {
		return err
	}
	if len(words) == 2 {
		step.Name = words[1]
		if _, taken := p.taken[step.Name]; taken && step.Do == Take {
			return fmt.Errorf("the name is taken")
		}
		p.taken[step.Name] = step.At
	}
	return nil
}

func parseDecision(words []string) (d algorithms.Decision, err error) {
	if len(words) != 6 {
		return d, fmt.Errorf("a decision has six words, got %d", len(words))
	}
	switch words[0] {
	case "yes":
		d.Allowed = true
	case "no":
	default:
		return d, fmt.Errorf("must be yes or no, got %s", words[0])
	}
	if d.Remaining, err = count(words[1]); err != nil {
		return d, err
	}
	for i, wait := range []*time.Duration{&d.RetryAfter, &d.NextAfter, &d.ResetAfter, &d.Delay} {
		if *wait, err = duration(words[2+i]); err != nil {
			return d, err
		}
	}
	return d, nil
}

// count parses a number of at least 0.
func count(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != text) {
		return 0, fmt.Errorf("must be a number of at least 0, got %s", text)
	}
	return n, err
}
