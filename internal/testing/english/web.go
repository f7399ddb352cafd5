package english

import (
	"html"
	"regexp"
	"strings"
)

var (
	htmlHidden = regexp.MustCompile(`(?s)<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)>`)
	htmlInline = regexp.MustCompile(`</?(?:a|b|code|em|strong|span|label)\b[^>]*>`)
	htmlShown  = regexp.MustCompile(`(?:title|alt|aria-label|placeholder)="([^"]*)"|>([^<>]+)`)
	template   = regexp.MustCompile(`\{\{[^}]*\}\}`)
)

// HTML returns the texts of a page that a browser shows.
func HTML(file, page string) []Text {
	keep := func(found string) string { return strings.Repeat("\n", strings.Count(found, "\n")) }
	page = htmlHidden.ReplaceAllStringFunc(page, keep)
	page = template.ReplaceAllString(page, code)
	var texts []Text
	shown := func(text string, from int) {
		if lines := strings.Split(html.UnescapeString(text), "\n"); isProse(text) {
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			texts = append(texts, Text{File: file, Kind: Message, First: 1 + strings.Count(page[:from], "\n"), Lines: lines})
		}
	}
	for _, at := range htmlShown.FindAllStringSubmatchIndex(page, -1) {
		if at[2] >= 0 {
			shown(page[at[2]:at[3]], at[2])
		}
	}
	page = htmlInline.ReplaceAllStringFunc(page, keep)
	for _, at := range htmlShown.FindAllStringSubmatchIndex(page, -1) {
		if at[4] >= 0 {
			shown(page[at[4]:at[5]], at[4])
		}
	}
	return texts
}

var annotation = regexp.MustCompile(`^\s*(?:summary|description): (.*)`)

// Config returns the comments of a file in which # begins them: of YAML, shell, Make, Docker, a Caddyfile.
// In YAML it also returns the messages of alerts.
func Config(file, source string) []Text {
	var texts []Text
	var open []string
	lines := strings.Split(source, "\n")
	for i, line := range lines {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if ok && text != "" && text[0] != ' ' { // a shebang, or text without a blank: code that is commented out
			ok = false
		}
		if ok {
			open = append(open, text)
			continue
		}
		texts = append(texts, paragraphs(file, i+1-len(open), open)...)
		open = nil
		if said := annotation.FindStringSubmatch(line); said != nil {
			texts = append(texts, Text{File: file, Kind: Message, First: i + 1, Lines: []string{template.ReplaceAllString(said[1], code)}})
		}
	}
	return append(texts, paragraphs(file, len(lines)+1-len(open), open)...)
}
