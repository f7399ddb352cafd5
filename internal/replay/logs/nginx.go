package logs

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// nginxVariables are the variables of nginx that say something about a request. There are also $http_x
// and $sent_http_x.
var nginxVariables = map[string]column{
	"msec":                {kind: kindEnd},
	"time_iso8601":        {kind: kindEnd},
	"time_local":          {kind: kindEnd},
	"request_time":        {kind: kindSeconds},
	"remote_addr":         {kind: kindClientIP},
	"realip_remote_addr":  {kind: kindRemoteIP},
	"proxy_protocol_addr": {kind: kindRemoteIP},
	"remote_user":         {kind: kindUser},
	"request":             {kind: kindRequest},
	"request_method":      {kind: kindMethod},
	"scheme":              {kind: kindScheme},
	"https":               {kind: kindScheme},
	"http_host":           {kind: kindHost},
	"host":                {kind: kindWeakHost},
	"server_name":         {kind: kindWeakHost},
	"request_uri":         {kind: kindURI},
	"uri":                 {kind: kindPath},
	"document_uri":        {kind: kindPath},
	"args":                {kind: kindQuery},
	"query_string":        {kind: kindQuery},
	"server_protocol":     {kind: kindProto},
	"status":              {kind: kindStatus},
	"body_bytes_sent":     {kind: kindSize},
	"bytes_sent":          {kind: kindSize},
	"content_length":      {kind: kindBytesRead},
}

// nginx reads lines of a log_format: texts and variables in turns.
type nginx struct {
	*builder
	parts []part
	of    Format
}

// part is a variable and the text behind it. The first part of a format may have no variable.
type part struct {
	column
	variable string
	text     string
}

// newNginx compiles the text of a log_format: the text alone, or the whole directive.
func newNginx(b *builder, o Options) (parser, error) {
	text := strings.TrimSpace(o.LogFormat)
	if text == "" {
		return nil, fmt.Errorf(`the format nginx needs the text of its log_format: --log-format '$remote_addr [$time_local] "$request" $status'`)
	}
	text, err := directive(text)
	if err != nil {
		return nil, err
	}
	n := &nginx{builder: b, of: Format{Name: "nginx", Step: time.Second}}
	if err := n.compile(text); err != nil {
		return nil, fmt.Errorf("log format: %w", err)
	}
	has := func(k ...kind) bool {
		return slices.ContainsFunc(n.parts, func(p part) bool { return slices.Contains(k, p.kind) })
	}
	switch {
	case !has(kindStart, kindEnd):
		return nil, fmt.Errorf("log format: it has no time: add $msec, $time_iso8601 or $time_local, got %q", text)
	case !has(kindClientIP, kindRemoteIP):
		return nil, fmt.Errorf("log format: it has no client address: add $remote_addr, got %q", text)
	case !has(kindRequest) && !(has(kindMethod) && has(kindURI, kindPath)):
		return nil, fmt.Errorf("log format: it has no request: add $request, got %q", text)
	}
	n.of.Host, n.of.Scheme = has(kindHost, kindWeakHost), has(kindScheme)
	n.of.Duration, n.of.User = has(kindSeconds), has(kindUser)
	for _, p := range n.parts {
		switch {
		case p.kind == kindHeader:
			n.of.Header.add(p.name)
		case p.kind == kindRespHeader:
			n.of.RespHeader.add(p.name)
		case p.variable == "msec":
			n.of.Step = time.Millisecond
		}
	}
	return n, nil
}

func (n *nginx) format() Format { return n.of }

// directive returns the text of a directive log_format: the quoted strings behind its name, joined.
func directive(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "log_format")
	if !ok || rest == "" || !strings.ContainsAny(rest[:1], " \t\n") {
		return text, nil
	}
	var b strings.Builder
	rest = strings.TrimSuffix(strings.TrimSpace(rest), ";")
	for words := 0; ; words++ {
		rest = strings.TrimSpace(rest)
		if rest == "" {
			break
		}
		if quote := rest[0]; quote == '\'' || quote == '"' {
			i := 1
			for i < len(rest) && rest[i] != quote {
				if rest[i] == '\\' && i+1 < len(rest) {
					i++
					switch rest[i] {
					case 't':
						b.WriteByte('\t')
						i++
						continue
					case quote, '\\':
					default:
						b.WriteByte('\\')
					}
				}
				b.WriteByte(rest[i])
				i++
			}
			if i >= len(rest) {
				return "", fmt.Errorf("log format: a string does not end: %q", rest)
			}
			rest = rest[i+1:]
			continue
		}
		word := rest
		if i := strings.IndexAny(rest, " \t\n"); i >= 0 {
			word = rest[:i]
		}
		if words > 0 && !strings.HasPrefix(word, "escape=") {
			b.WriteString(word)
		}
		rest = rest[len(word):]
	}
	return b.String(), nil
}

func (n *nginx) compile(text string) error {
	current := part{}
	for text != "" {
		literal, rest, found := strings.Cut(text, "$")
		current.text += literal
		if !found {
			break
		}
		name, after := variable(rest)
		if name == "" {
			return fmt.Errorf("there is no name behind the $ in %q", "$"+rest)
		}
		if current.variable != "" && current.text == "" {
			return fmt.Errorf("$%s and $%s cannot be told apart: put a blank between them", current.variable, name)
		}
		n.parts = append(n.parts, current)
		current, text = part{column: n.column(name), variable: name}, after
	}
	n.parts = append(n.parts, current)
	return nil
}

// variable cuts the name of a variable off: name or {name}.
func variable(text string) (name, rest string) {
	if braced, ok := strings.CutPrefix(text, "{"); ok {
		name, rest, _ = strings.Cut(braced, "}")
		return name, rest
	}
	i := 0
	for i < len(text) && (text[i] == '_' || text[i]-'0' <= 9 || text[i]|0x20-'a' < 26) {
		i++
	}
	return text[:i], text[i:]
}

// fieldName returns the header that the name of a variable contains.
func fieldName(name string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

func (n *nginx) column(variable string) column {
	if c, ok := nginxVariables[variable]; ok {
		return c
	}
	if name, ok := strings.CutPrefix(variable, "http_"); ok {
		return column{kindHeader, fieldName(name)}
	}
	if name, ok := strings.CutPrefix(variable, "sent_http_"); ok {
		return column{kindRespHeader, fieldName(name)}
	}
	return column{}
}

func (n *nginx) parse(line string, to *Record) error {
	n.begin(to)
	for i, p := range n.parts {
		v := line
		if p.text != "" || i == 0 {
			at := len(line) - len(p.text) // of the last text
			if i < len(n.parts)-1 || !strings.HasSuffix(line, p.text) {
				at = find(line, p.text)
			}
			if at < 0 || p.variable == "" && at > 0 {
				return fmt.Errorf("%q is not where the log format has it", p.text)
			}
			v, line = line[:at], line[at+len(p.text):]
		} else {
			line = ""
		}
		if v = unescape(v); value(v) != "" {
			n.put(p.column, v)
		}
	}
	if line != "" {
		return fmt.Errorf("%q follows what the log format has", line[:min(len(line), 20)])
	}
	return n.finish()
}
