package cases

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// The elements of a JUnit report.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		took     time.Duration
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// changesSuite is the name of the suite of changes of a config.
const changesSuite = "changes of "

// WriteJUnit writes the report as JUnit XML, with a suite for each file, and one for the changes of each config.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Time: inSeconds(r.Took)}
	for i := range r.Cases {
		c := &r.Cases[i]
		made := junitCase{Class: c.File, Name: c.Name, File: c.File, Line: c.Line, Time: inSeconds(c.Took)}
		if len(c.Failures) > 0 {
			var text strings.Builder
			for j := range c.Failures {
				c.Failures[j].write(&text, c.File, 0)
			}
			made.Failure = &junitFailure{Message: c.Failures[0].Got, Text: text.String()}
		}
		all.add(c.File, made, c.Took)
	}
	for _, c := range r.Changes {
		made := junitCase{Class: changesSuite + c.Config, Name: c.Change, File: c.Config, Time: inSeconds(0)}
		if c.FoundBy == "" && c.Accepted == "" {
			made.Failure = &junitFailure{Message: "no case fails with this change"}
		}
		all.add(changesSuite+c.Config, made, 0)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "\t")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// add adds a case to the suite of a name.
func (s *junitSuites) add(suite string, c junitCase, took time.Duration) {
	if n := len(s.Suites); n == 0 || s.Suites[n-1].Name != suite {
		s.Suites = append(s.Suites, junitSuite{Name: suite})
	}
	to := &s.Suites[len(s.Suites)-1]
	to.Cases = append(to.Cases, c)
	to.Tests, s.Tests = to.Tests+1, s.Tests+1
	if c.Failure != nil {
		to.Failures, s.Failures = to.Failures+1, s.Failures+1
	}
	to.took += took
	to.Time = inSeconds(to.took)
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
