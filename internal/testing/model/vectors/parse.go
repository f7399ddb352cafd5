package vectors

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// parser reads a file line by line.
type parser struct {
	file     *File
	from     time.Time
	limit    algorithms.Limit
	taken    map[string]int64 // the times of the charges by name
	scenario *Scenario
}

// parse parses a file. A line that is unknown is an error.
func parse(name, text string) (*File, error) {
	p := &parser{file: &File{Name: name}}
	for i, line := range strings.Split(text, "\n") {
		if err := p.read(i+1, line); err != nil {
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
		p.scenario.BeyondModel = true
	case "from":
		p.from, err = time.Parse(time.RFC3339Nano, rest)
	case "limit":
		p.limit = algorithms.Limit{}
		for _, word := range strings.Fields(rest) {
			if option, value, _ := strings.Cut(word, "="); err == nil {
				err = p.setOption(option, value)
			}
		}
	default:
		request, answer, _ := strings.Cut(line, " -> ")
		step := Step{Limit: p.limit, Want: answer, line: number}
		err = p.step(&step, strings.Fields(request))
		p.scenario.Steps = append(p.scenario.Steps, step)
	}
	return err
}

// step parses a request, a renewal, an adjustment or a charge ahead.
func (p *parser) step(step *Step, words []string) error {
	at, err := time.ParseDuration(words[0])
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
	if len(words) > 2 {
		step.Name = words[2]
	}
	taken, known := p.taken[step.Name]
	lasts := time.Duration(0)
	switch step.Do {
	case Adjust:
		if step.Taken = taken; !known {
			return fmt.Errorf("there was no charge under that name")
		}
		return nil
	case Ahead:
		// An adjustment of what was charged ahead is of a charge that was made when the units last no more.
		lasts, err = time.ParseDuration(strings.Fields(step.Want)[1])
	case Take:
		if known && step.Name != "" {
			return fmt.Errorf("the name is taken")
		}
	}
	p.taken[step.Name] = step.At + lasts.Microseconds()
	return err
}

func (p *parser) setOption(option, value string) (err error) {
	l := &p.limit
	switch option {
	case "events":
		l.Events, err = strconv.ParseInt(value, 10, 64)
	case "burst":
		l.Burst, err = strconv.ParseInt(value, 10, 64)
	case "window":
		for _, c := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
			if value == c.String() {
				l.Calendar = c
				return nil
			}
		}
		l.Window, err = time.ParseDuration(value)
	case "timezone":
		l.Location, err = time.LoadLocation(value)
	case "max_wait":
		l.MaxWait, err = time.ParseDuration(value)
	case "lease":
		l.Lease, err = time.ParseDuration(value)
	case "lend":
		l.Hold, err = time.ParseDuration(value)
	case "refill":
		l.Refill = value
	case "mode":
		l.Mode = value
	case "align":
		l.Align = value
	default:
		err = fmt.Errorf("no option %q", option)
	}
	return err
}
