package cases

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
)

// The template of a report in JUnit XML.
var junit = template.Must(template.New("junit").Funcs(template.FuncMap{"xml": inXML, "seconds": inSeconds}).Parse(xml.Header +
	`<testsuites tests="{{.Tests}}" failures="{{.Failures}}" time="{{seconds .Took}}">
{{- range .Suites}}
	<testsuite name="{{xml .Name}}" tests="{{len .Cases}}" failures="{{.Failures}}" time="{{seconds .Took}}">
{{- $suite := xml .Name}}{{range .Cases}}
		<testcase classname="{{$suite}}" name="{{xml .Name}}" file="{{xml .File}}"{{with .Line}} line="{{.}}"{{end}} time="{{seconds .Took}}">
{{- if .Failures}}
			<failure message="{{xml (index .Failures 0).Got}}">{{xml .Reasons}}</failure>
		{{end}}</testcase>
{{- end}}
	</testsuite>
{{- end}}
</testsuites>
`))

func inXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // cannot fail: a Builder does not
	return b.String()
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// suite is the results of a file, or the changes of a config.
type suite struct {
	Name     string
	Cases    []*Result
	Failures int
	Took     time.Duration
}

// WriteJUnit writes the report as JUnit XML, with a suite for each file, and one for the changes of each config.
func (r *Report) WriteJUnit(w io.Writer) error {
	var suites []*suite
	failures := 0
	add := func(name string, of *Result) {
		if n := len(suites); n == 0 || suites[n-1].Name != name {
			suites = append(suites, &suite{Name: name})
		}
		to := suites[len(suites)-1]
		to.Cases, to.Took = append(to.Cases, of), to.Took+of.Took
		if len(of.Failures) > 0 {
			to.Failures++
			failures++
		}
	}
	for i := range r.Cases {
		add(r.Cases[i].File, &r.Cases[i])
	}
	for _, c := range r.Changes {
		of := &Result{File: c.Config, Name: c.Change}
		if c.FoundBy == "" && c.Accepted == "" {
			of.Failures = []Failure{{Got: "no case fails with this change"}}
		}
		add("changes of "+c.Config, of)
	}
	return junit.Execute(w, map[string]any{"Suites": suites, "Tests": len(r.Cases) + len(r.Changes), "Failures": failures, "Took": r.Took})
}

// Reasons says what does not hold, in words. A change that was missed has only a message.
func (r *Result) Reasons() string {
	var b strings.Builder
	for i := range r.Failures {
		if r.Failures[i].Line > 0 {
			r.Failures[i].write(&b, r.File, 0)
		}
	}
	return b.String()
}
