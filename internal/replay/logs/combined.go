package logs

import (
	"bytes"
	"time"
)

// combined reads the common and the combined format, with what servers are often told to add: the host
// in front, and behind it X-Forwarded-For, the duration, or what Traefik adds.
type combined struct {
	*builder
	s  scanner // undoes escapes
	of Format
}

func newCombined(b *builder, _ Options) (parser, error) {
	return &combined{builder: b, of: Format{
		Name: "combined", Header: Known{Names: []string{"Referer", "User-Agent"}}, User: true, Step: time.Second,
	}}, nil
}

// format returns what the lines have had until now.
func (c *combined) format() Format { return c.of }

func (c *combined) parse(line []byte, to *Record) error {
	c.begin(to)
	c.s.start(nil)
	// In front of the time: [vhost] address identity user.
	front, rest, ok := bytes.Cut(line, []byte(" ["))
	when, rest, ok2 := bytes.Cut(rest, []byte("] "))
	if !ok || !ok2 {
		return errCut
	}
	if c.end, c.hasEnd = parseTime(when); !c.hasEnd {
		return errNoTime
	}
	if err := c.front(front); err != nil {
		return err
	}
	if !bytes.HasPrefix(rest, []byte{'"'}) { // a user may have written a time in front
		return errCut
	}
	requestLine, rest, ok := c.word(rest)
	statusCode, rest, ok2 := c.word(rest)
	if code, isNumber := digits(statusCode); !ok || !ok2 || !isNumber || code > 999 {
		return errCut
	}
	c.put(column{kind: kindRequest}, requestLine)
	c.put(column{kind: kindStatus}, statusCode)
	length, rest, _ := c.word(rest)
	c.put(column{kind: kindSize}, length)
	if len(rest) > 0 {
		if rest, ok = c.quotedFields(rest); !ok {
			return errCut
		}
		c.additions(rest)
	}
	return c.finish()
}

// front reads the text before the time. The user may have blanks.
func (c *combined) front(text []byte) error {
	first, rest, _ := bytes.Cut(text, []byte{' '})
	if c.to.ClientIP = c.address(first); c.to.ClientIP == "" {
		c.to.Host = c.text(bytes.TrimSuffix(bytes.TrimSuffix(first, []byte(":443")), []byte(":80")))
		c.of.Host = true
		first, rest, _ = bytes.Cut(rest, []byte{' '})
		if c.to.ClientIP = c.address(first); c.to.ClientIP == "" {
			return errNoAddress
		}
	}
	_, name, ok := bytes.Cut(rest, []byte{' '}) // behind the identity, which nobody has
	if !ok {
		return errCut
	}
	c.put(column{kind: kindUser}, c.value(name))
	return nil
}

// quotedFields reads the referrer and the agent of the combined format. A line of the common format may
// have additions without them.
func (c *combined) quotedFields(rest []byte) (behind []byte, ok bool) {
	if rest[0] != '"' {
		return rest, true
	}
	for _, name := range [...]string{"Referer", "User-Agent"} {
		v, next, ok := c.word(rest)
		if !ok {
			return nil, false
		}
		if v = c.value(v); len(v) > 0 {
			c.put(column{kindHeader, name}, v)
		}
		rest = next
	}
	return rest, true
}

// additions reads what a server was configured to add. What has no known form is passed over.
func (c *combined) additions(rest []byte) {
	for len(rest) > 0 {
		quoted := rest[0] == '"'
		v, next, ok := c.word(rest)
		if !ok {
			return
		}
		rest = next
		number := v
		if _, after, ok := bytes.Cut(v, []byte{'='}); ok && !quoted {
			number = after // rt=0.012
		}
		switch {
		case len(c.value(v)) == 0:
		case c.isForwarded(v):
			c.put(column{kindHeader, "X-Forwarded-For"}, v)
			c.of.Header.add("X-Forwarded-For")
		case quoted || c.of.Duration && c.to.Duration > 0:
		case bytes.HasSuffix(v, []byte("ms")): // of Traefik, whose time is when the request began
			c.put(column{kind: kindMillis}, v[:len(v)-2])
			c.start, c.hasStart, c.hasEnd = c.end, true, false
			c.of.Duration = true
		case bytes.IndexByte(number, '.') > 0:
			if _, ok := parseDecimal(number, time.Second); ok {
				c.put(column{kind: kindSeconds}, number)
				c.of.Duration = true
			}
		}
	}
}

// isForwarded reports whether a text is a list of addresses.
func (c *combined) isForwarded(v []byte) bool {
	first, _, _ := bytes.Cut(v, []byte{','})
	return bytes.IndexAny(first, ".:") > 0 && c.address(first) != ""
}

// value returns nothing for the sign of a missing value.
func (c *combined) value(v []byte) []byte {
	if string(v) == "-" {
		return nil
	}
	return v
}

// word returns the next word, which may be quoted, without its escapes, and what follows it.
func (c *combined) word(text []byte) (word, rest []byte, ok bool) {
	text = bytes.TrimLeft(text, " ")
	if len(text) == 0 || text[0] != '"' {
		word, rest, _ = bytes.Cut(text, []byte{' '})
		return word, bytes.TrimLeft(rest, " "), len(word) > 0
	}
	c.s.turn(text)
	word = c.s.quoted()
	return word, bytes.TrimLeft(text[c.s.at:], " "), !c.s.bad
}
