package jsondoc

import (
	"errors"
	"regexp"
	"strings"
)

// Facts are what a comment says about a field in sentences of a fixed form.
type Facts struct {
	Default  string // as the comment says it, such as "`allow`" or "none"
	Required string // on what condition the field is required, or "required"; empty if it is not
	Text     string // the comment without the sentence about the default
	Unit     string // of a number

	Min, Max           string // numbers or durations; empty if there is no bound
	AboveMin, BelowMax bool   // the bound itself is not allowed
	Choices            []string
}

// Literal is the default if it is one value: a word that is written as code, a number, a duration, true or false. Otherwise
// it is empty.
func (f *Facts) Literal() string {
	if found := literal.FindStringSubmatch(f.Default); found != nil {
		return found[1] + found[2]
	}
	return ""
}

// scalar says which facts the comment of a field must have.
type scalar struct {
	number bool   // it is a number, so it has a unit and a range
	unit   string // the unit, if the type says it
	choice bool   // it may be a word out of several
}

const bound = `([0-9]+(?:\.[0-9]+)?(?:ns|ms|s|m|h|d)?)`

var (
	// A sentence ends before the beginning of another one.
	defaults = regexp.MustCompile(`(?:^|\s)Default: (.+?)\.(?:\s+[A-Z].*)?$`)
	required = regexp.MustCompile(`(?:^|\s)Required(,? [^.]*)?\.`)
	usual    = regexp.MustCompile("(`[^`]+`) \\(the default\\)")
	ranges   = regexp.MustCompile(`(?i)(from|above|at least) ` + bound + `(?: (?:to|and (at most|below)) ` + bound + `)?`)
	most     = regexp.MustCompile(`(?:at most) ` + bound)
	choices  = regexp.MustCompile("(?:[Oo]ne(?: or several)? of|either) ((?:`[^`]+`(?:, | or | and )?)+)")
	literal  = regexp.MustCompile("^(?:`([^` ]+)`|(true|false|" + bound + "))$")
	word     = regexp.MustCompile("`([^`]+)`")
)

// Units that comments do not say.
const (
	none      = "-" // of numbers that count nothing
	durations = "duration"
)

// units are the units of numbers, by how comments say them.
var units = []struct {
	pattern *regexp.Regexp
	unit    string
}{
	{regexp.MustCompile(`in percent`), "percent"},
	{regexp.MustCompile(`as a fraction`), "fraction"},
	{regexp.MustCompile(`^The status`), "HTTP status"},
	{regexp.MustCompile(`^The number of leading bits`), "bits"},
	{regexp.MustCompile(`^(?:The number of|How many) (instances|refusals|keys|connections|bytes|requests|events|windows)`), ""},
	{regexp.MustCompile(`^The number of the database`), none},
	{regexp.MustCompile(`^What a request takes`), "events"},
	{regexp.MustCompile(`cost|count for`), "cost"},
}

// readFacts reads the facts in a comment.
func readFacts(comment string, s scalar) (f Facts, err error) {
	if comment == "" {
		return f, errors.New("it has no comment")
	}
	f.Text = comment
	if found := defaults.FindStringSubmatchIndex(comment); found != nil {
		f.Default = comment[found[2]:found[3]]
		f.Text = strings.TrimSpace(comment[:found[0]] + comment[found[3]+1:])
	} else if found := usual.FindStringSubmatch(comment); found != nil {
		f.Default = found[1]
	} else if found := required.FindStringSubmatch(comment); found != nil {
		f.Required = strings.TrimSpace("required" + found[1])
		f.Text = strings.TrimSpace(strings.Replace(f.Text, strings.TrimSpace(found[0]), "", 1))
	} else if !strings.HasPrefix(comment, "Has no effect") {
		return f, errors.New(`the comment says no default: write "Default: ...." or "Required."`)
	}
	if s.choice {
		if found := choices.FindStringSubmatch(f.Text); found != nil {
			for _, w := range word.FindAllStringSubmatch(found[1], -1) {
				f.Choices = append(f.Choices, w[1])
			}
		}
	}
	if !s.number || strings.HasPrefix(comment, "Has no effect") {
		return f, nil
	}
	if found := ranges.FindStringSubmatch(f.Text); found != nil {
		f.Min, f.AboveMin = found[2], found[1] == "above"
		f.Max, f.BelowMax = found[4], found[3] == "below"
	} else if found := most.FindStringSubmatch(f.Text); found != nil {
		f.Max = found[1]
	} else {
		return f, errors.New(`the comment says no range: write "from 1 to 10", "at least 1" or "at most 10"`)
	}
	if f.Unit = s.unit; f.Unit != "" {
		return f, nil
	}
	for _, u := range units {
		if found := u.pattern.FindStringSubmatch(f.Text); found != nil {
			if f.Unit = u.unit; f.Unit == "" {
				f.Unit = found[1]
			}
			return f, nil
		}
	}
	return f, errors.New(`the comment says no unit: begin with "The number of ..." or "How many ...", or write "in percent"`)
}

// Range says which numbers are allowed, in words.
func (f *Facts) Range() string {
	lowest, highest := readable(f.Min), readable(f.Max)
	low, high := "at least ", "at most "
	if f.AboveMin {
		low = "above "
	}
	if f.BelowMax {
		high = "below "
	}
	switch {
	case f.Min != "" && f.Max != "" && !f.AboveMin && !f.BelowMax:
		return lowest + " to " + highest
	case f.Min != "" && f.Max != "":
		return low + lowest + ", " + high + highest
	case f.Min != "":
		return low + lowest
	case f.Max != "":
		return high + highest
	}
	return ""
}

// readable writes a large number with commas.
func readable(number string) string {
	if strings.Trim(number, "0123456789") != "" {
		return number
	}
	for i := len(number) - 3; i > 0; i -= 3 {
		number = number[:i] + "," + number[i:]
	}
	return number
}
