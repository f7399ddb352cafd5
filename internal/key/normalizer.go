package key

import (
	"net/url"
	"path"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Caddy's matchers compare hosts and paths in a normal form. Keys use the same form, or
// else a client would get a new key with each spelling that a matcher takes for the same.

// Normalizer is how the value of a placeholder is normalized.
type Normalizer struct {
	source string              // the placeholder that has the whole value
	whole  func(string) string // normalizes the whole value
	part   func(string) string // takes the placeholder's value from that; nil if it is the whole
	typed  func(string) string // normalizes what somebody writes as the placeholder's value
}

// normalize is the normal form of the value of from.
func (n *Normalizer) normalize(value string) string {
	value = n.whole(value)
	if n.part != nil {
		value = n.part(value)
	}
	return value
}

const (
	hostPlaceholder     = "http.request.host"
	pathPlaceholder     = "http.request.uri.path"
	origPathPlaceholder = "http.request.orig_uri.path"
)

// normalizers are the placeholders whose values are normalized. Those that end in a dot are
// followed by the number of a label or of a part of the path.
var normalizers = map[string]*Normalizer{
	hostPlaceholder:                {source: hostPlaceholder, whole: cleanHost, typed: cleanHost},
	"http.request.hostport":        {source: hostPlaceholder, whole: cleanHost, typed: cleanHost},
	"http.request.host.labels.":    {source: hostPlaceholder, whole: cleanHost, typed: cleanHost},
	"http.request.tls.server_name": {source: "http.request.tls.server_name", whole: cleanHost, typed: cleanHost},
	"http.request.uri":             {source: "http.request.uri", whole: cleanURI, typed: cleanURI},
	"http.request.uri_escaped":     {source: "http.request.uri", whole: cleanURI, part: url.QueryEscape, typed: escaped(cleanURI)},
	"http.request.orig_uri":        {source: "http.request.orig_uri", whole: cleanURI, typed: cleanURI},
	pathPlaceholder:                {source: pathPlaceholder, whole: cleanPath, typed: cleanPath},
	pathPlaceholder + "_escaped":   {source: pathPlaceholder, whole: cleanPath, part: url.QueryEscape, typed: escaped(cleanPath)},
	pathPlaceholder + ".dir":       {source: pathPlaceholder, whole: cleanPath, part: pathDir, typed: cleanPath},
	pathPlaceholder + ".file":      {source: pathPlaceholder, whole: cleanPath, part: pathFile, typed: strings.ToLower},
	pathPlaceholder + ".file.base": {source: pathPlaceholder, whole: cleanPath, part: pathBase, typed: strings.ToLower},
	pathPlaceholder + ".file.ext":  {source: pathPlaceholder, whole: cleanPath, part: path.Ext, typed: strings.ToLower},
	pathPlaceholder + ".":          {source: pathPlaceholder, whole: cleanPath, typed: strings.ToLower},
	origPathPlaceholder:            {source: origPathPlaceholder, whole: cleanPath, typed: cleanPath},
	origPathPlaceholder + ".dir":   {source: origPathPlaceholder, whole: cleanPath, part: pathDir, typed: cleanPath},
	origPathPlaceholder + ".file":  {source: origPathPlaceholder, whole: cleanPath, part: pathFile, typed: strings.ToLower},
	origPathPlaceholder + ".":      {source: origPathPlaceholder, whole: cleanPath, typed: strings.ToLower},
	"http.request.orig_uri.path.file_escaped": {
		source: origPathPlaceholder, whole: cleanPath,
		part: func(p string) string { return url.PathEscape(pathFile(p)) }, typed: escapedFile,
	},
}

// NormalizerOf is how the values of a placeholder are normalized; nil if they are not.
func NormalizerOf(placeholder string) *Normalizer {
	if n, ok := normalizers[placeholder]; ok {
		return n
	}
	dot := strings.LastIndexByte(placeholder, '.') + 1
	number, err := strconv.Atoi(placeholder[dot:])
	of, ok := normalizers[placeholder[:dot]]
	if !ok || err != nil {
		return nil
	}
	numbered := *of
	numbered.part = func(path string) string { return pathPart(path, number) }
	if of.source == hostPlaceholder {
		numbered.part = func(host string) string { return hostLabel(host, number) }
	}
	return &numbered
}

// cleanHost is a host as Caddy's matcher of hosts compares it, which knows neither case
// nor brackets; also without the dot at its end, which means the same host in DNS.
func cleanHost(host string) string {
	for i := range len(host) {
		if c := host[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || c == '[' || c == ']' {
			host = strings.Map(hostRune, host)
			break
		}
	}
	return strings.TrimRight(host, ".")
}

// hostRune drops brackets, and maps all letters that strings.EqualFold takes for the same
// to one of them.
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

// hostLabel counts from the right, as Caddy does.
func hostLabel(host string, number int) string {
	for range number {
		dot := strings.LastIndexByte(host, '.')
		if dot < 0 {
			return ""
		}
		host = host[:dot]
	}
	return host[strings.LastIndexByte(host, '.')+1:]
}

// cleanPath is a path as Caddy's matcher of paths compares it: in lower case, without
// double slashes, "/./" and "/../".
func cleanPath(p string) string {
	if isClean(p) {
		return p
	}
	return caddyhttp.NormalizedPath(strings.ToLower(p), true)
}

// isClean recognizes most paths that are clean.
func isClean(p string) bool {
	if p == "" || p[0] != '/' || runtime.GOOS == "windows" {
		return p == ""
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

func pathDir(p string) string {
	dir, _ := path.Split(p)
	return dir
}

func pathFile(p string) string {
	_, file := path.Split(p)
	return file
}

// pathBase is a file's name without its extension, as Caddy has it.
func pathBase(p string) string {
	return strings.TrimSuffix(path.Base(p), path.Ext(p))
}

func pathPart(p string, number int) string {
	p, more := strings.TrimPrefix(p, "/"), true
	for range number {
		if _, p, more = strings.Cut(p, "/"); !more {
			return ""
		}
	}
	part, _, _ := strings.Cut(p, "/")
	return part
}

// cleanURI is a path and a query. The path is clean and escaped in one way; the query is
// as the client wrote it.
func cleanURI(uri string) string {
	if !strings.HasPrefix(uri, "/") { // a client may send what it sends to proxies: a whole URL
		if _, behind, ok := strings.Cut(uri, "://"); ok {
			uri = "/"
			if end := strings.IndexAny(behind, "/?"); end >= 0 {
				uri = behind[end:]
			}
		}
	}
	raw, query, asks := strings.Cut(uri, "?")
	if asks && raw == "" {
		raw = "/"
	}
	if !isClean(raw) || strings.IndexFunc(raw, mayNeedEscape) >= 0 {
		p, err := url.PathUnescape(raw)
		if err != nil {
			p = raw
		}
		raw = (&url.URL{Path: cleanPath(p)}).EscapedPath()
	}
	if query == "" {
		return raw
	}
	if len(raw)+1+len(query) == len(uri) && strings.HasPrefix(uri, raw) {
		return uri
	}
	return raw + "?" + query
}

// mayNeedEscape is true for what may be escaped in a path.
func mayNeedEscape(r rune) bool {
	alphanumeric := 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !alphanumeric && r != '/' && r != '-' && r != '_' && r != '.' && r != '~'
}

// escaped normalizes text that is escaped as in a query.
func escaped(clean func(string) string) func(string) string {
	return func(text string) string {
		plain, err := url.QueryUnescape(text)
		if err != nil {
			plain = text
		}
		return url.QueryEscape(clean(plain))
	}
}

// escapedFile normalizes a file's name that is escaped as in a path.
func escapedFile(text string) string {
	plain, err := url.PathUnescape(text)
	if err != nil {
		plain = text
	}
	return url.PathEscape(strings.ToLower(plain))
}
