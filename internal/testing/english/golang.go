package english

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Go returns the comments of a Go file and, unless it is a test, the messages in it: texts of several
// words. It adds the names that the file has to names.
func Go(file string, source []byte, names map[string]bool) ([]Text, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []Text
	for _, group := range parsed.Comments {
		texts = append(texts, comment(file, set.Position(group.Pos()).Line, group)...)
	}
	test := strings.HasSuffix(file, "_test.go")
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names[n.Name] = true
		case *ast.BasicLit:
			if n.Kind != token.STRING || test {
				break
			}
			if text, err := strconv.Unquote(n.Value); err == nil && isProse(text) {
				texts = append(texts, Text{File: file, Kind: Message, First: set.Position(n.Pos()).Line, Lines: strings.Split(text, "\n")})
			}
		}
		return true
	})
	return texts, nil
}

// comment returns the paragraphs of a comment.
func comment(file string, line int, group *ast.CommentGroup) []Text {
	var lines []string
	for _, c := range group.List {
		text, block := strings.CutPrefix(c.Text, "/*")
		text = strings.TrimSuffix(text, "*/")
		for l := range strings.SplitSeq(text, "\n") {
			if !block {
				l = strings.TrimPrefix(l, "//")
			} else if l != "" {
				l = " " + l
			}
			lines = append(lines, l)
		}
	}
	return paragraphs(file, line, lines)
}

// paragraphs returns the paragraphs of the lines of a comment without its code, which is indented, and
// directives, which begin without a blank.
func paragraphs(file string, line int, lines []string) []Text {
	var texts []Text
	var open []string
	end := func(next int) {
		if len(open) > 0 {
			texts = append(texts, Text{File: file, Kind: Comment, First: next - len(open), Lines: open})
		}
		open = nil
	}
	for _, l := range lines {
		switch trimmed := strings.TrimSpace(l); {
		case trimmed == "" || strings.HasPrefix(l, "\t") || strings.HasPrefix(l, "    ") || l[0] != ' ':
			end(line)
		case strings.HasPrefix(trimmed, "- "):
			end(line)
			fallthrough
		default:
			open = append(open, inlineCode.ReplaceAllString(trimmed, code))
		}
		line++
	}
	end(line)
	return texts
}

// isProse reports whether a text in Go is made for people: it has several words, most of them of letters.
func isProse(text string) bool {
	words, fields := 0, strings.Fields(text)
	for _, field := range fields {
		if strings.Trim(field, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.,:;?!()\"") == "" {
			words++
		}
	}
	return words >= 3 && 2*words >= len(fields) && !strings.Contains(text, "redis.call")
}
