package logs

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// w3c reads the extended log format of the W3C: CloudFront's, and that of IIS. A line #Fields names the
// columns of the lines behind it.
type w3c struct {
	texts
	cloudFront bool
}

var w3cColumns = columnsOf(`date:date time:clock date-local:date time-local:clock timestamp:msec c-ip:remote_addr
	cs-method:request_method cs-uri:request_uri cs-uri-stem:uri cs-uri-query:args cs-host:http_host cs(host):host
	x-host-header:http_host cs-protocol:scheme s-port:scheme cs-version:server_protocol
	cs-protocol-version:server_protocol cs-username:remote_user sc-status:status
	x-forwarded-for:http_x_forwarded_for time-taken:request_ms timetakenms:request_ms`)

// fields learns the columns. CloudFront has the host of the client in x-host-header, and its own in cs(Host).
func (w *w3c) fields(names string) {
	p := pattern{{}}
	w.cloudFront = strings.Contains(names, "x-edge-")
	for _, name := range strings.Fields(strings.ToLower(names)) {
		c, known := w3cColumns[name]
		of, field, isField := strings.Cut(strings.TrimSuffix(name, ")"), "(")
		switch {
		case w.cloudFront && name == "time-taken":
			c = columnOf("request_time")
		case known || !isField:
		case of == "cs":
			c = columnOf("http_" + field)
		case of == "sc":
			c = columnOf("sent_http_" + field)
		}
		if put := c.put; c.field != "" || name == "cs-username" {
			c.put = func(b *builder, v string) error { return put(b, w.decode(v)) }
		}
		p = append(p, part{column: c, variable: name, text: " "})
	}
	p[len(p)-1].text = ""
	w.patterns = []pattern{p}
}

// inQuotes is a value in which blanks are allowed.
var inQuotes = regexp.MustCompile(`"[^"]*"`)

func (w *w3c) parse(line string, to *Record) error {
	if names, ok := strings.CutPrefix(line, "#Fields:"); ok {
		w.fields(names)
	}
	switch {
	case line[0] == '#':
		return errNoRequest
	case len(w.patterns) == 0:
		return errors.New("there is no line #Fields before it")
	}
	return w.texts.parse(inQuotes.ReplaceAllStringFunc(strings.ReplaceAll(line, "\t", " "), func(v string) string {
		return strings.ReplaceAll(strings.Trim(v, `"`), " ", "+")
	}), to)
}

// decode decodes a text in which blanks were not allowed: IIS writes +, and CloudFront %20.
func (w *w3c) decode(v string) string {
	if !w.cloudFront {
		return strings.ReplaceAll(v, "+", " ")
	}
	text, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return text
}
