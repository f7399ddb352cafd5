package cases

import (
	"encoding/xml"
	"io"
	"strings"
	"text/template"
)

// The template of a report in JUnit XML. The class of a case is its file, and that of a change says which config it changes.
var junit = template.Must(template.New("junit").Funcs(template.FuncMap{"xml": inXML, "text": inWords}).Parse(
	xml.Header + `<testsuites>
	<testsuite name="caddy rate-limit test" time="{{printf "%.3f" .Took.Seconds}}">
{{- range .Cases}}
		<testcase classname="{{xml .File}}" name="{{xml .Name}}" time="{{printf "%.3f" .Took.Seconds}}">
{{- if .Failures}}
			<failure message="{{xml (index .Failures 0).Got}}">{{xml (text .)}}</failure>
		{{end}}</testcase>
{{- end}}
{{- range .Changes}}
		<testcase classname="changes of {{xml .Config}}" name="{{xml .Change}}">
{{- if and (not .FoundBy) (not .Accepted)}}
			<failure message="no case fails with this change"></failure>
		{{end}}</testcase>
{{- end}}
	</testsuite>
</testsuites>
`))

func inXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // cannot fail: a Builder does not
	return b.String()
}

func inWords(r Result) string {
	var b strings.Builder
	r.write(&b, 0)
	return b.String()
}

// WriteJUnit writes the report as JUnit XML.
func (r *Report) WriteJUnit(w io.Writer) error { return junit.Execute(w, r) }
