package english

import (
	"regexp"
	"strings"
)

// Script returns the comments of a file in JavaScript or Lua, and the messages in it: texts of several
// words. It adds the names that the file has to names.
func Script(file, source string, names map[string]bool) []Text {
	s := &script{file: file, source: source, line: 1, lua: strings.HasSuffix(file, ".lua")}
	s.code("")
	s.endComment()
	for _, name := range identifier.FindAllString(source, -1) {
		names[name] = true
	}
	return s.texts
}

var identifier = regexp.MustCompile(`[A-Za-z_]\w+`)

// script is a file that is being read. It knows only as much of the languages as is needed to find where
// comments and texts begin and end.
type script struct {
	file, source string
	at, line     int
	lua          bool
	last         byte // the last character of code that is not blank
	texts        []Text
	comment      []string // the lines of the comment that is open, the last of them above this line
}

// code reads to the end of a block of code, which a character closes, or to the end of the file.
func (s *script) code(end string) {
	depth := 0
	for s.at < len(s.source) {
		rest := s.source[s.at:]
		switch c := rest[0]; {
		case s.lua && strings.HasPrefix(rest, "--[["):
			s.skip("]]")
		case strings.HasPrefix(rest, s.lineComment()):
			s.readComment()
		case !s.lua && strings.HasPrefix(rest, "/*"):
			s.skip("*/")
		case c == '\'' || c == '"' || c == '`' && !s.lua:
			s.readText(c)
			s.last = c
		case c == '/' && !s.lua && s.patternMayBegin():
			s.readPattern()
		case end != "" && depth == 0 && c == end[0]:
			s.at++
			return
		default:
			switch c {
			case '{':
				depth++
			case '}':
				depth--
			}
			if c > ' ' {
				s.last = c
				s.endComment()
			}
			s.step()
		}
	}
}

func (s *script) lineComment() string {
	if s.lua {
		return "--"
	}
	return "//"
}

// step goes on by a character.
func (s *script) step() {
	if s.source[s.at] == '\n' {
		s.line++
	}
	s.at++
}

// skip goes behind the next occurrence of a text.
func (s *script) skip(end string) {
	for s.at < len(s.source) && !strings.HasPrefix(s.source[s.at:], end) {
		s.step()
	}
	s.at = min(len(s.source), s.at+len(end))
}

// readComment reads a comment to the end of its line. Comments on lines of their own are read as one.
func (s *script) readComment() {
	begin := strings.LastIndexByte(s.source[:s.at], '\n') + 1
	alone := strings.TrimSpace(s.source[begin:s.at]) == ""
	if !alone {
		s.endComment()
	}
	text, _, _ := strings.Cut(s.source[s.at+2:], "\n")
	s.at += 2 + len(text)
	s.comment = append(s.comment, text)
	if !alone {
		s.line++ // as if the comment were above the next line
		s.endComment()
		s.line--
	}
}

// endComment ends a comment: no more of its lines come.
func (s *script) endComment() {
	s.texts = append(s.texts, paragraphs(s.file, s.line-len(s.comment), s.comment)...)
	s.comment = nil
}

// readText reads a text in quotes. What a template has between its braces is code, too.
func (s *script) readText(quote byte) {
	s.endComment()
	var text strings.Builder
	first := s.line
	s.at++
	for s.at < len(s.source) && s.source[s.at] != quote {
		switch rest := s.source[s.at:]; {
		case rest[0] == '\\' && len(rest) > 1:
			text.WriteByte(rest[1])
			s.at++
			s.step()
		case quote == '`' && strings.HasPrefix(rest, "${"):
			text.WriteString(code)
			s.at += 2
			s.last = '{'
			s.code("}")
		default:
			text.WriteByte(rest[0])
			s.step()
		}
	}
	s.at++
	if isProse(text.String()) {
		s.texts = append(s.texts, Text{File: s.file, Kind: Message, First: first, Lines: strings.Split(text.String(), "\n")})
	}
}

// patternMayBegin reports whether a slash begins a regular expression here, and does not divide.
func (s *script) patternMayBegin() bool {
	return strings.IndexByte("(,=:[!&|?{};+-*%<>~^\x00", s.last) >= 0 || strings.HasSuffix(strings.TrimRight(s.source[:s.at], " "), "return")
}

// readPattern reads a regular expression.
func (s *script) readPattern() {
	class := false
	for s.at++; s.at < len(s.source) && (class || s.source[s.at] != '/'); s.at++ {
		switch s.source[s.at] {
		case '\\':
			s.at++
		case '[':
			class = true
		case ']':
			class = false
		}
	}
	s.at++
	s.last = '/'
}
