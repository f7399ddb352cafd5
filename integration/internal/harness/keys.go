package harness

import (
	"encoding/base64"
	"strings"
)

// AwkwardKeys are keys that are hard to pass through paths, queries, JSON, shells and tables.
var AwkwardKeys = []string{
	"plain", "", "a/b", "a//b/../c", ".", "..", `"double" 'single' \back`, "line\nbreak\ttab", "grüße 世界",
	"\xff\xfe raw", "half \xc3", "nul\x00byte", "-hyphen", "100%25 a+b&c=d;e#f", "\x1b[31mred\u202e", "{client_ip} $HOME `id`", "  two  ",
}

// ByQuery returns a site with a zone whose key comes from the query, and with more options.
func ByQuery(store string, options ...string) string {
	return Caddyfile("", `
		rate_limit {
			zone "odd / zone" {
				key {http.request.uri.query.k}
				events 2
				window 1h
				`+strings.Join(options, "\n")+`
			}
			`+store+`
		}
		respond ok`)
}

// KeyState is the admin API's answer about a key.
type KeyState struct {
	Zone      string `json:"zone"`
	Key       string `json:"key"`
	KeyBase64 string `json:"key_base64"`
	Quota     int64  `json:"quota"`
	Used      int64  `json:"used"`
	Outcome   string `json:"outcome"`
	Error     string `json:"error"`
}

// Is reports whether the answer is about a key.
func (k *KeyState) Is(key string) bool {
	if k.KeyBase64 == "" {
		return k.Key == key
	}
	raw, err := base64.StdEncoding.DecodeString(k.KeyBase64)
	return err == nil && string(raw) == key
}
