package replay

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"text/template"

	"github.com/seed-161337e5/caddyratelimit/internal/web"
)

//go:embed html
var files embed.FS

var page = template.Must(template.ParseFS(files, "html/page.html"))

// scripts are the parts of the page's script, in their order. The first ones are modules elsewhere.
var scripts = []string{
	"static/dom.js", "static/text.js", "html/base.js", "html/day.js", "html/clients.js", "html/who.js", "html/whatif.js", "html/report.js",
}

// modular is what makes a script a module, which the parts of this one are not.
var modular = regexp.MustCompile(`(?m)^(import .*|export )`)

// WriteHTML writes the report as a page: a single file that loads nothing and runs from a disk. All
// texts of the logs are in one JSON value, and come into the page as text. A policy in the page forbids
// all scripts but its own, and all connections.
func (r *Result) WriteHTML(to io.Writer) error {
	// Within strings, json writes <, > and & as escapes, so no text can end the element.
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	script := modular.ReplaceAllString("\"use strict\";\n"+assets(scripts...), "")
	style := assets("static/base.css", "html/report.css")
	return page.Execute(to, map[string]string{
		"Data": string(data), "Script": script, "ScriptSource": source(script), "Style": style, "StyleSource": source(style),
	})
}

func assets(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		from := files
		if strings.HasPrefix(name, "static/") {
			from = web.Files
		}
		text, err := from.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		all.Write(text)
		all.WriteString("\n")
	}
	return all.String()
}

// source is the source of a text in a Content-Security-Policy: its hash.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
