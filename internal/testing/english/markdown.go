package english

import (
	"regexp"
	"strings"
)

var (
	inlineCode = regexp.MustCompile("``[^`]+``|`[^`]*`")
	mdImage    = regexp.MustCompile(`!\[([^\]]*)\]\([^)]*\)`)
	mdLink     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	mdAddress  = regexp.MustCompile(`<?https?://[^\s)>]+>?`)
	mdTag      = regexp.MustCompile(`</?[a-z][^>]*>|<!--.*?-->`)
	mdItem     = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+(?:\[[ x]\]\s+)?`)
	mdRule     = regexp.MustCompile(`^[\s|:-]+$`)
)

// Markdown returns the prose of a page: no code, no front matter, no addresses of links.
func Markdown(file, page string) []Text {
	var texts []Text
	var open *Text
	end := func() {
		if open != nil {
			texts = append(texts, *open)
		}
		open = nil
	}
	fenced := false
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			end()
		case fenced:
		case trimmed == "" || open == nil && strings.HasPrefix(line, "    "):
			end()
		case strings.HasPrefix(trimmed, "#"):
			end()
			texts = append(texts, Text{File: file, First: i + 1, Lines: []string{plain(strings.TrimLeft(trimmed, "# ")) + "."}})
		case strings.HasPrefix(trimmed, "|"):
			end()
			if mdRule.MatchString(trimmed) {
				continue
			}
			row := strings.ReplaceAll(inlineCode.ReplaceAllString(trimmed, code), `\|`, "/")
			for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
				if cell = plain(cell); strings.ContainsAny(cell, "abcdefghijklmnopqrstuvwxyz") {
					texts = append(texts, Text{File: file, Cell: true, First: i + 1, Lines: []string{cell}})
				}
			}
		default:
			if item := mdItem.FindString(line); item != "" {
				end()
				line = line[len(item):]
			}
			if open == nil {
				open = &Text{File: file, First: i + 1}
			}
			open.Lines = append(open.Lines, strings.TrimSpace(line))
		}
	}
	end()
	for i := range texts {
		texts[i].Lines = plainLines(texts[i].Lines)
	}
	return texts
}

// plainLines is plain for lines, in which links and code may go over the end of a line.
func plainLines(lines []string) []string {
	const newline = "\x00"
	joined := strings.Join(lines, newline)
	keep := func(with string) func(string) string {
		return func(found string) string { return with + strings.Repeat(newline, strings.Count(found, newline)) }
	}
	joined = inlineCode.ReplaceAllStringFunc(joined, keep(code))
	joined = mdImage.ReplaceAllString(joined, "$1.")
	joined = mdLink.ReplaceAllString(joined, "$1")
	lines = strings.Split(joined, newline)
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	return lines
}

func plain(line string) string {
	line = inlineCode.ReplaceAllString(line, code)
	line = mdImage.ReplaceAllString(line, "$1")
	line = mdLink.ReplaceAllString(line, "$1")
	line = mdAddress.ReplaceAllString(line, code)
	line = mdTag.ReplaceAllString(line, "")
	return strings.TrimSpace(strings.NewReplacer("**", "", "*", "").Replace(line))
}
