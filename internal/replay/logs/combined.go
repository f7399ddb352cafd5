package logs

import (
	"strconv"
	"strings"
	"time"
)

// combined reads the common and the combined format, with what servers are often told to add: the host
// in front, and behind it X-Forwarded-For, the duration, or what Traefik adds.
type combined struct {
	*builder
	of Format
}

func newCombined(b *builder, _ Options) (parser, error) {
	return &combined{builder: b, of: Format{
		Name: "combined", Header: Known{Names: []string{"Referer", "User-Agent"}}, User: true, Step: time.Second,
	}}, nil
}

// format returns what the lines have had until now.
func (c *combined) format() Format { return c.of }

func (c *combined) parse(line string, to *Record) error {
	c.begin(to)
	// In front of the time: [vhost] address identity user.
	front, rest, ok := strings.Cut(line, " [")
	when, rest, ok2 := strings.Cut(rest, "] ")
	if !ok || !ok2 {
		return errCut
	}
	if c.end = parseTime(when); c.end.IsZero() {
		return errNoTime
	}
	if err := c.front(front); err != nil {
		return err
	}
	if !strings.HasPrefix(rest, `"`) { // a user may have written a time in front
		return errCut
	}
	requestLine, rest, ok := word(rest)
	statusCode, rest, ok2 := word(rest)
	if code, err := strconv.ParseUint(statusCode, 10, 64); !ok || !ok2 || err != nil || code > 999 {
		return errCut
	}
	c.put(column{kind: kindRequest}, requestLine)
	c.put(column{kind: kindStatus}, statusCode)
	length, rest, _ := word(rest)
	c.put(column{kind: kindSize}, length)
	if rest != "" {
		if rest, ok = c.quotedFields(rest); !ok {
			return errCut
		}
		c.additions(rest)
	}
	return c.finish()
}

// front reads the text before the time. The user may have blanks.
func (c *combined) front(text string) error {
	first, rest, _ := strings.Cut(text, " ")
	if c.put(column{kind: kindClientIP}, first); c.to.ClientIP == "" {
		c.put(column{kind: kindHost}, withoutPort(first))
		c.of.Host = true
		first, rest, _ = strings.Cut(rest, " ")
		if c.put(column{kind: kindClientIP}, first); c.to.ClientIP == "" {
			return errNoAddress
		}
	}
	_, name, ok := strings.Cut(rest, " ") // behind the identity, which nobody has
	if !ok {
		return errCut
	}
	c.put(column{kind: kindUser}, value(name))
	return nil
}

// withoutPort returns a host without the port that its scheme has anyway.
func withoutPort(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

// quotedFields reads the referrer and the agent of the combined format. A line of the common format may
// have additions without them.
func (c *combined) quotedFields(rest string) (behind string, ok bool) {
	if rest[0] != '"' {
		return rest, true
	}
	for _, name := range [...]string{"Referer", "User-Agent"} {
		v, next, ok := word(rest)
		if !ok {
			return "", false
		}
		if v = value(v); v != "" {
			c.put(column{kindHeader, name}, v)
		}
		rest = next
	}
	return rest, true
}

// additions reads what a server was configured to add. What has no known form is passed over.
func (c *combined) additions(rest string) {
	for rest != "" {
		quoted := rest[0] == '"'
		v, next, ok := word(rest)
		if !ok {
			return
		}
		rest = next
		number := v
		if _, after, ok := strings.Cut(v, "="); ok && !quoted {
			number = after // rt=0.012
		}
		switch {
		case value(v) == "":
		case isForwarded(v):
			c.put(column{kindHeader, "X-Forwarded-For"}, v)
			c.of.Header.add("X-Forwarded-For")
		case quoted || c.of.Duration && c.to.Duration > 0:
		case strings.HasSuffix(v, "ms"): // of Traefik, whose time is when the request began
			c.put(column{kind: kindMillis}, strings.TrimSuffix(v, "ms"))
			c.start, c.end = c.end, time.Time{}
			c.of.Duration = true
		case strings.Contains(number, "."):
			if _, err := strconv.ParseFloat(number, 64); err == nil {
				c.put(column{kind: kindSeconds}, number)
				c.of.Duration = true
			}
		}
	}
}

// isForwarded reports whether a text is a list of addresses.
func isForwarded(v string) bool {
	first, _, _ := strings.Cut(v, ",")
	return strings.ContainsAny(first, ".:") && parseAddress(first) != ""
}

// value returns nothing for the sign of a missing value.
func value(v string) string {
	if v == "-" {
		return ""
	}
	return v
}
