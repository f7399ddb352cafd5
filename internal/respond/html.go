package respond

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// htmlPage is a refusal for people. It refers to nothing, and has no script, so that it also works in a flood and under
// any content security policy.
var htmlPage = template.Must(template.New("refusal").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</html>
`))

func (t *told) writeHTML(w http.ResponseWriter, r *http.Request) error {
	var body strings.Builder
	text := t.action()
	if t.kind == limiter.WrongRequest {
		text = t.summary()
	}
	err := htmlPage.Execute(&body, struct{ Title, Text string }{http.StatusText(t.status), text})
	if err != nil {
		return err
	}
	return writeBody(w, r, t.status, "text/html; charset=utf-8", []byte(body.String()))
}
