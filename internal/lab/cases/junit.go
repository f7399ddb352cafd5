package cases

import (
	"io"
	"strings"
	"text/template"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// The template of a report in JUnit XML. The class of a case is its file, and that of a change says which config it changes.
var junit = template.Must(template.New("junit").Funcs(template.FuncMap{"plain": say.Printable, "text": inWords}).Parse(
	`<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
	<testsuite name="caddy rate-limit test" time="{{printf "%.3f" .Took.Seconds}}">
{{- range .Cases}}
		<testcase classname="{{.File | plain | html}}" name="{{.Name | plain | html}}" time="{{printf "%.3f" .Took.Seconds}}">
{{- if .Failures}}
			<failure message="{{(index .Failures 0).Got | plain | html}}">{{text . | html}}</failure>
		{{end}}</testcase>
{{- end}}
{{- range .Changes}}
		<testcase classname="changes of {{.Config | plain | html}}" name="{{.Change | plain | html}}">
{{- if and (not .FoundBy) (not .Accepted)}}
			<failure message="no case fails with this change"></failure>
		{{end}}</testcase>
{{- end}}
	</testsuite>
</testsuites>
`))

func inWords(r Result) string {
	var b strings.Builder
	r.write(&b, 0)
	return b.String()
}

// WriteJUnit writes the report as JUnit XML.
func (r *Report) WriteJUnit(w io.Writer) error { return junit.Execute(w, r) }
