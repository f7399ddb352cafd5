package key

import (
	"path"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// spelling gives one value to all spellings of a host or a path that Caddy's matchers treat as equal. Otherwise a client
// would get a new key with each of them.
type spelling struct {
	of    string                           // the placeholder of the whole host or path
	clean func(string) string              // gives the whole one spelling
	part  func(string) string              // takes the value from it; nil for the whole
	nth   func(whole string, n int) string // is it for one of many parts, whose number ends the placeholder
	text  func(string) string              // gives text that a person writes the form of values; nil for clean

	read func(*placeholder.Request) string
}

const (
	hostPlaceholder = "http.request.host"
	pathPlaceholder = "http.request.uri.path"
	sentPlaceholder = "http.request.orig_uri.path" // before rewrites
)

// spellings are those of placeholders, or of namespaces that end in a dot. Those of the path are also those of the one before
// rewrites. A whole URI has none, because each query makes another key of it.
var spellings = map[string]spelling{
	hostPlaceholder:                {of: hostPlaceholder, clean: cleanHost},
	hostPlaceholder + "port":       {of: hostPlaceholder, clean: cleanHost},
	hostPlaceholder + ".labels.":   {of: hostPlaceholder, clean: cleanHost, nth: hostLabel},
	"http.request.tls.server_name": {of: "http.request.tls.server_name", clean: cleanHost},
	pathPlaceholder:                {of: pathPlaceholder, clean: cleanPath},
	pathPlaceholder + ".dir":       {of: pathPlaceholder, clean: cleanPath, part: pathDir},
	pathPlaceholder + ".file":      {of: pathPlaceholder, clean: cleanPath, part: pathFile, text: strings.ToLower},
	pathPlaceholder + ".file.base": {of: pathPlaceholder, clean: cleanPath, part: pathBase, text: strings.ToLower},
	pathPlaceholder + ".file.ext":  {of: pathPlaceholder, clean: cleanPath, part: path.Ext, text: strings.ToLower},
	pathPlaceholder + ".":          {of: pathPlaceholder, clean: cleanPath, nth: pathPart, text: strings.ToLower},
}

// spellingOf returns the spelling of a placeholder, or nil if it has none.
func spellingOf(name string) *spelling {
	rewritten := strings.Replace(name, sentPlaceholder, pathPlaceholder, 1)
	s, ok := spellings[rewritten]
	if dot := strings.LastIndexByte(rewritten, '.') + 1; !ok {
		n, err := strconv.Atoi(rewritten[dot:])
		if s, ok = spellings[rewritten[:dot]]; !ok || err != nil {
			return nil
		}
		nth := s.nth
		s.part = func(whole string) string { return nth(whole, n) }
	}
	if s.text == nil {
		s.text = s.clean
	}
	if name != rewritten {
		s.of = sentPlaceholder
	}
	s.read = placeholder.Reader(s.of)
	return &s
}

// value returns the value of the placeholder for a request.
func (s *spelling) value(r *placeholder.Request) (string, error) {
	whole := s.clean(s.read(r))
	if s.part != nil {
		return s.part(whole), nil
	}
	return whole, nil
}

// cleanHost returns a host in the form that Caddy's host matcher compares, without case and
// brackets, and without a dot at the end, which makes no difference in DNS.
func cleanHost(host string) string {
	for i := range len(host) {
		if c := host[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || c == '[' || c == ']' {
			host = strings.Map(hostRune, host)
			break
		}
	}
	return strings.TrimRight(host, ".")
}

// hostRune removes brackets, and maps all letters that are equal under strings.EqualFold to the same
// letter.
func hostRune(r rune) rune {
	if r == '[' || r == ']' {
		return -1
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}

// hostLabel returns a label of a host, counted from the right as Caddy does.
func hostLabel(host string, n int) string {
	labels := strings.Split(host, ".")
	if n < 0 || n >= len(labels) {
		return ""
	}
	return labels[len(labels)-1-n]
}

// cleanPath returns a path in the form that Caddy's path matcher compares: in lower case, without
// double slashes, "/./" and "/../". It begins with a slash, even if the target of a request has no path.
func cleanPath(p string) string {
	if isClean(p) {
		return p
	}
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return caddyhttp.NormalizedPath(strings.ToLower(p), true)
}

// isClean reports whether a path is certainly clean. It is false for a few clean paths.
func isClean(p string) bool {
	if p == "" || p[0] != '/' || runtime.GOOS == "windows" {
		return false
	}
	for i := range len(p) {
		switch c := p[i]; {
		case c >= utf8.RuneSelf, 'A' <= c && c <= 'Z':
			return false
		case c == '/' && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.'):
			return false
		}
	}
	return true
}

func pathDir(p string) string  { return p[:strings.LastIndexByte(p, '/')+1] }
func pathFile(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// pathBase returns the name of a file without its extension, as Caddy does.
func pathBase(p string) string {
	return strings.TrimSuffix(path.Base(p), path.Ext(p))
}

func pathPart(p string, n int) string {
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	if n < 0 || n >= len(parts) {
		return ""
	}
	return parts[n]
}
