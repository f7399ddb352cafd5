package caddyratelimit

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// addressPlaceholders are those that hold a client's address.
var addressPlaceholders = map[string]bool{
	"http.vars.client_ip":      true,
	"http.request.remote.host": true,
}

// defaultIPv6Prefix is for the address of a client, who commonly has a whole /64.
const defaultIPv6Prefix = 64

// keyTemplate makes a request's key.
type keyTemplate struct {
	parts []keyPart

	// several says that there is more than one placeholder. Then each value is written
	// with its length, so that no value can imitate its neighbours.
	several bool

	// An address is cut to these many bits. If both are 0, the key is no address.
	ipv4Prefix, ipv6Prefix int

	// unknown are placeholders that only another module can know.
	unknown []string
}

// keyPart is a placeholder, or text if there is none.
type keyPart struct{ text, placeholder string }

// newKeyTemplate parses a key. Backslashes before braces mean the braces, as
// everywhere in Caddy.
func newKeyTemplate(text string, ipv4Prefix, ipv6Prefix int) (*keyTemplate, error) {
	if ipv4Prefix < 0 || ipv4Prefix > 32 {
		return nil, fmt.Errorf("ipv4_prefix must be from 1 to 32, got %d", ipv4Prefix)
	}
	if ipv6Prefix < 0 || ipv6Prefix > 128 {
		return nil, fmt.Errorf("ipv6_prefix must be from 1 to 128, got %d", ipv6Prefix)
	}
	k := &keyTemplate{ipv4Prefix: ipv4Prefix, ipv6Prefix: ipv6Prefix}
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("key %q: %w", text, err)
	}
	placeholders := 0
	for _, p := range k.parts {
		if p.placeholder == "" {
			continue
		}
		placeholders++
		known, err := checkPlaceholder(p.placeholder)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", text, err)
		}
		if !known {
			k.unknown = append(k.unknown, p.placeholder)
		}
	}
	k.several = placeholders > 1
	if len(k.parts) == 1 && addressPlaceholders[k.parts[0].placeholder] {
		k.ipv6Prefix = cmp.Or(k.ipv6Prefix, defaultIPv6Prefix)
	}
	if k.ipv4Prefix != 0 || k.ipv6Prefix != 0 {
		k.ipv4Prefix, k.ipv6Prefix = cmp.Or(k.ipv4Prefix, 32), cmp.Or(k.ipv6Prefix, 128)
	}
	return k, nil
}

// varies tells whether requests can have different keys.
func (k *keyTemplate) varies() bool {
	return slices.ContainsFunc(k.parts, func(p keyPart) bool { return p.placeholder != "" })
}

func (k *keyTemplate) parse(text string) error {
	var literal strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '}'):
			i++
			literal.WriteByte(text[i])
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return fmt.Errorf("a brace is open; write \\{ for a brace that begins no placeholder")
			}
			if end == 1 {
				return fmt.Errorf("{} names no placeholder")
			}
			if strings.Contains(text[i+1:i+end], "{") {
				return fmt.Errorf("a placeholder must not hold another")
			}
			if literal.Len() > 0 {
				k.parts = append(k.parts, keyPart{text: literal.String()})
				literal.Reset()
			}
			k.parts = append(k.parts, keyPart{placeholder: text[i+1 : i+end]})
			i += end
		default:
			literal.WriteByte(c)
		}
	}
	if literal.Len() > 0 {
		k.parts = append(k.parts, keyPart{text: literal.String()})
	}
	return nil
}

// expand makes the key of a request.
func (k *keyTemplate) expand(repl *caddy.Replacer) string {
	if len(k.parts) == 0 {
		return ""
	}
	if len(k.parts) == 1 {
		return k.mask(k.parts[0].value(repl))
	}
	var b strings.Builder
	for _, p := range k.parts {
		v := p.value(repl)
		if k.several && p.placeholder != "" {
			b.WriteString(strconv.Itoa(len(v)))
			b.WriteByte(':')
		}
		b.WriteString(v)
	}
	return k.mask(b.String())
}

func (p *keyPart) value(repl *caddy.Replacer) string {
	if p.placeholder == "" {
		return p.text
	}
	v, _ := repl.Get(p.placeholder)
	if s, ok := v.(string); ok {
		return s
	}
	return caddy.ToString(v)
}

// mask writes an address the one way it is written, cut to the prefix, if the zone
// takes its key for an address: an IPv4 address in IPv6 clothes is the IPv4 address,
// and the zone of an IPv6 address is the client's to choose.
func (k *keyTemplate) mask(key string) string {
	if k.ipv4Prefix == 0 && k.ipv6Prefix == 0 {
		return key
	}
	addr, err := netip.ParseAddr(key)
	if err != nil {
		return key
	}
	addr = addr.Unmap().WithZone("")
	bits, whole := k.ipv6Prefix, 128
	if addr.Is4() {
		bits, whole = k.ipv4Prefix, 32
		if bits == whole && len(key) <= len("255.255.255.255") {
			return key // as nearly always: it stands there as it should
		}
	}
	if bits == 0 || bits == whole {
		return addr.String()
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return key
	}
	return prefix.String()
}
