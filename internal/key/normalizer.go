package key

import (
	"net/http"
	"net/url"
	"path"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Normalizer normalizes the value of a placeholder. Caddy's matchers compare hosts and paths in a
// normal form, and keys have the same form. Otherwise a client would get a new key with each
// spelling that the matchers treat as equal.
type Normalizer struct {
	source   string                            // the placeholder with the whole value
	read     func(*placeholder.Request) string // reads the whole value, if not from source
	whole    func(string) string               // normalizes the whole value
	part     func(string) string               // extracts the value of this placeholder; nil if it is the whole value
	fromText func(string) string               // normalizes text that a person writes as the value
}

// normalize returns the placeholder's value, given the value of the source.
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

// normalizers has the placeholders whose values are normalized. A name that ends in a dot is followed
// by the number of a label of the host or of a part of the path.
var normalizers = map[string]*Normalizer{
	hostPlaceholder:                {source: hostPlaceholder, whole: cleanHost, fromText: cleanHost},
	"http.request.hostport":        {source: hostPlaceholder, whole: cleanHost, fromText: cleanHost},
	"http.request.host.labels.":    {source: hostPlaceholder, whole: cleanHost, fromText: cleanHost},
	"http.request.tls.server_name": {source: "http.request.tls.server_name", whole: cleanHost, fromText: cleanHost},
	"http.request.uri":             {source: "http.request.uri", whole: cleanURI, fromText: cleanURI},
	"http.request.uri_escaped":     {source: "http.request.uri", whole: cleanURI, part: url.QueryEscape, fromText: escaped(cleanURI)},
	"http.request.orig_uri":        {read: origURI, whole: cleanURI, fromText: cleanURI},
	pathPlaceholder:                {source: pathPlaceholder, whole: cleanPath, fromText: cleanPath},
	pathPlaceholder + "_escaped":   {source: pathPlaceholder, whole: cleanPath, part: url.QueryEscape, fromText: escaped(cleanPath)},
	pathPlaceholder + ".dir":       {source: pathPlaceholder, whole: cleanPath, part: pathDir, fromText: cleanPath},
	pathPlaceholder + ".file":      {source: pathPlaceholder, whole: cleanPath, part: pathFile, fromText: strings.ToLower},
	pathPlaceholder + ".file.base": {source: pathPlaceholder, whole: cleanPath, part: pathBase, fromText: strings.ToLower},
	pathPlaceholder + ".file.ext":  {source: pathPlaceholder, whole: cleanPath, part: path.Ext, fromText: strings.ToLower},
	pathPlaceholder + ".":          {source: pathPlaceholder, whole: cleanPath, fromText: strings.ToLower},
	origPathPlaceholder:            {source: origPathPlaceholder, whole: cleanPath, fromText: cleanPath},
	origPathPlaceholder + ".dir":   {source: origPathPlaceholder, whole: cleanPath, part: pathDir, fromText: cleanPath},
	origPathPlaceholder + ".file":  {source: origPathPlaceholder, whole: cleanPath, part: pathFile, fromText: strings.ToLower},
	origPathPlaceholder + ".":      {source: origPathPlaceholder, whole: cleanPath, fromText: strings.ToLower},
	"http.request.orig_uri.path.file_escaped": {
		source: origPathPlaceholder, whole: cleanPath,
		part: func(p string) string { return url.PathEscape(pathFile(p)) }, fromText: escapedFile,
	},
}

// NormalizerOf returns the normalizer of a placeholder, or nil if its values are not normalized.
func NormalizerOf(name string) *Normalizer {
	if n, ok := normalizers[name]; ok {
		return n
	}
	dot := strings.LastIndexByte(name, '.') + 1
	number, err := strconv.Atoi(name[dot:])
	family, ok := normalizers[name[:dot]]
	if !ok || err != nil {
		return nil
	}
	numbered := *family
	numbered.part = func(path string) string { return pathPart(path, number) }
	if family.source == hostPlaceholder {
		numbered.part = func(host string) string { return hostLabel(host, number) }
	}
	return &numbered
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

// cleanPath returns a path in the form that Caddy's path matcher compares: in lower case, without
// double slashes, "/./" and "/../". It begins with a slash, also if the target of a request has no path.
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

func pathDir(p string) string {
	dir, _ := path.Split(p)
	return dir
}

func pathFile(p string) string {
	_, file := path.Split(p)
	return file
}

// pathBase returns the name of a file without its extension, as Caddy does.
func pathBase(p string) string {
	return strings.TrimSuffix(path.Base(p), path.Ext(p))
}

func pathPart(p string, number int) string {
	p = strings.TrimPrefix(p, "/")
	for range number {
		var more bool
		if _, p, more = strings.Cut(p, "/"); !more {
			return ""
		}
	}
	part, _, _ := strings.Cut(p, "/")
	return part
}

// cleanURI returns a URI with a clean path that is escaped in one way only. The query stays as the
// client wrote it.
func cleanURI(uri string) string {
	raw, query, _ := strings.Cut(uri, "?")
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

// origURI returns the path and the query that the client has sent, maybe in a whole URL as to a proxy. The host of a
// CONNECT, and the text of a URL without a host (x:text), are no path.
func origURI(r *placeholder.Request) string {
	sent, _ := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if sent.URL == nil {
		return ""
	}
	u := *sent.URL
	u.Opaque = ""
	return u.RequestURI()
}

// mayNeedEscape reports whether a character may be escaped in a path.
func mayNeedEscape(r rune) bool {
	alphanumeric := 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !alphanumeric && r != '/' && r != '-' && r != '_' && r != '.' && r != '~'
}

// escaped returns a function that cleans text which is escaped as in a query.
func escaped(clean func(string) string) func(string) string {
	return func(text string) string {
		plain, err := url.QueryUnescape(text)
		if err != nil {
			plain = text
		}
		return url.QueryEscape(clean(plain))
	}
}

// escapedFile cleans the name of a file that is escaped as in a path.
func escapedFile(text string) string {
	plain, err := url.PathUnescape(text)
	if err != nil {
		plain = text
	}
	return url.PathEscape(strings.ToLower(plain))
}
