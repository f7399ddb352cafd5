package vectors

import (
	"fmt"
	"slices"
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
	taken    map[string]int64 // the times of the charges by name
	scenario *Scenario
}

// Parse parses a file. A line that is unknown or not in the one form of [Step.Line] or [Options] is an error.
func Parse(name, text string) (*File, error) {
	p := &parser{file: &File{Name: name, lines: strings.Split(text, "\n")}}
	for i, line := range p.file.lines {
		if err := p.read(i, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w: %q", name, i+1, err, line)
		}
	}
	if len(p.file.Scenarios) == 0 {
		return nil, fmt.Errorf("%s: no scenario", name)
	}
	return p.file, nil
}

func (p *parser) read(number int, line string) (err error) {
	defer func() {
		if missing := recover(); missing != nil {
			err = fmt.Errorf("%v", missing)
		}
	}()
	written := line
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "", "#":
	case "algorithm":
		p.file.Algorithm = rest
		_, err = algorithms.Get(rest)
	case "scenario":
		p.file.Scenarios = append(p.file.Scenarios, Scenario{Title: rest})
		p.scenario = &p.file.Scenarios[len(p.file.Scenarios)-1]
		p.from, p.limit, p.taken = Start, algorithms.Limit{}, make(map[string]int64)
	case "beyond":
		p.scenario.BeyondModel, written = true, "beyond model"
	case "from":
		p.from, err = time.Parse(time.RFC3339Nano, rest)
	case "limit":
		err = p.setLimit(rest)
		written = Options(p.limit)
	default:
		step := Step{Limit: p.limit, line: number}
		err = p.step(&step, strings.Fields(line))
		p.scenario.Steps = append(p.scenario.Steps, step)
		written = step.Line(p.from.UnixMicro())
	}
	if err == nil && written != line {
		err = fmt.Errorf("must be written %q", written)
	}
	return err
}

// step parses a request, a renewal, an adjustment or a charge ahead.
func (p *parser) step(step *Step, words []string) error {
	at, err := duration(words[0])
	if err != nil {
		return err
	}
	step.At = p.from.Add(at).UnixMicro()
	if step.Do = map[string]Do{"renew": Renew, "adjust": Adjust, "ahead": Ahead}[words[1]]; step.Do != Take {
		words = words[1:]
	}
	if step.Cost, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return err
	}
	if words = words[2:]; len(words) > 0 && words[0] != strings.TrimSpace(arrow) {
		step.Name = words[0]
	}
	taken, known := p.taken[step.Name]
	switch answer := words[slices.Index(words, strings.TrimSpace(arrow))+1:]; step.Do {
	case Adjust:
		if step.Taken = taken; !known {
			return fmt.Errorf("there was no charge under that name")
		}
		return nil
	case Ahead:
		step.Want.Lasts, err = duration(answer[1])
		step.Want.Units, _ = strconv.ParseInt(answer[0], 10, 64)
	case Take:
		if known && step.Name != "" {
			return fmt.Errorf("the name is taken")
		}
		err = parseDecision(&step.Want, answer)
	}
	// An adjustment of what was charged ahead is of a charge that was made when the units last no more.
	p.taken[step.Name] = step.At + step.Want.Lasts.Microseconds()
	return err
}

func parseDecision(d *algorithms.Decision, words []string) (err error) {
	d.Allowed = words[0] == "yes"
	d.Remaining, err = strconv.ParseInt(words[1], 10, 64)
	for i, wait := range []*time.Duration{&d.RetryAfter, &d.NextAfter, &d.ResetAfter, &d.Delay} {
		if err == nil {
			*wait, err = duration(words[2+i])
		}
	}
	return err
}
