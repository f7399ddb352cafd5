// Package adaptive is the directive adaptive_concurrency. It lets as many requests through at once as the upstream can use,
// makes the others wait shortly, and shares the slots fairly among keys. Package gate finds the limit and the order.
//
// A limit has a name. It outlives configs, because what it has learned of the upstream holds for the next one. Metrics, the
// admin API and doctor read it with [Running]. Zones know nothing of it.
package adaptive

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/hangup"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler lets as many requests through at once as the upstream can use, and finds that number while it runs. The
// other requests wait shortly. A request that gets no slot in time ends with status 503, which error routes can handle.
type Handler struct {
	// The name of the limit in metrics and in the admin API. Handlers with the same name share the limit, and must have
	// the same options. Default: `default`.
	Name string `json:"name,omitempty" caddyfile:"-" default:"default"`

	// What distinguishes clients, which share the slots fairly: text with placeholders, such as
	// `{http.vars.client_ip}`. Choose something that clients cannot choose. Default: none, so that all requests are alike.
	Key string `json:"key,omitempty" default:"=none"`

	// The number of leading bits of an IPv4 address that count, from 1 to 32, where a placeholder
	// of the key is an address. Default: 32.
	IPv4Prefix int `json:"ipv4_prefix,omitempty" range:"1..32" unit:"bits" default:"=32"`

	// The number of leading bits of an IPv6 address that count, from 1 to 128, where a placeholder
	// of the key is an address. Default: 64 for Caddy's placeholders of the client's address, 128 for others.
	IPv6Prefix int `json:"ipv6_prefix,omitempty" range:"1..128" unit:"bits" default:"=64 for {client_ip} and {remote_host}, else 128"`

	// The classes of requests: a text with placeholders whose value names the class, such as `{http.vars.plan}`, and the names of
	// at most 8 classes, the most important one first. Requests of no class are in one more, the last one. Clients must not choose
	// the class. Default: one class.
	Priority []string `json:"priority,omitempty" syntax:"<text> <class>..." default:"=one class"`

	// How long a request may wait for a slot, from 10ms to 1h. Default: 1s.
	MaxWait caddy.Duration `json:"max_wait,omitempty" range:"10ms..1h" default:"1s"`

	// How many requests may always run at once, from 1 to 1000000. Default: none.
	Min int `json:"min,omitempty" range:"1..1000000" unit:"requests" default:"=none"`

	// How many requests may ever run at once, from 1 to 1000000, and not less than min. Default: none.
	Max int `json:"max,omitempty" range:"1..1000000" unit:"requests" default:"=none"`

	// With `response`, a request holds its slot until all of its response was sent. Otherwise the slot is free when the
	// response starts. Default: none.
	Hold string `json:"hold,omitempty" words:"response" default:"=none"`

	template *key.Template // of the key
	priority *key.Template // nil without classes
	names    []string      // of the classes; that of all requests is empty if there are no priorities
	limit    *limit        // nil before it is acquired
}

// others is the name of the class of requests without a priority.
const others = "others"

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.adaptive_concurrency", New: func() caddy.Module { return new(Handler) }}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (h *Handler) UnmarshalJSON(text []byte) error { return option.JSON(text, h) }

// check checks the options, and reads the texts of key and priority.
func (h *Handler) check() (err error) {
	if h.Max != 0 && h.Max < h.Min {
		return fmt.Errorf("max must not be below min, which is %d, got %d", h.Min, h.Max)
	}
	if h.template, err = key.New(h.Key, h.IPv4Prefix, h.IPv6Prefix); err != nil {
		return err
	}
	if h.names = []string{""}; len(h.Priority) == 0 {
		return nil
	}
	names := h.Priority[1:]
	if len(names) == 0 || len(names) >= gate.MaxClasses {
		return fmt.Errorf("priority takes a text and 1 to %d classes, got %d", gate.MaxClasses-1, len(names))
	}
	if h.priority, err = key.NewText("priority", h.Priority[0]); err != nil {
		return err
	}
	h.names = nil
	for _, name := range names {
		normal := h.priority.NormalizeName(name)
		if normal == "" || normal == others || slices.Contains(h.names, normal) {
			return fmt.Errorf("priority: the names of classes must differ, and none is empty or %q, got %q", others, name)
		}
		h.names = append(h.names, normal)
	}
	h.names = append(h.names, others)
	return nil
}

// Provision implements [caddy.Provisioner].
func (h *Handler) Provision(ctx caddy.Context) (err error) {
	option.Fill(h)
	if err := h.check(); err != nil {
		return err
	}
	h.IPv4Prefix, h.IPv6Prefix = h.template.Prefixes.IPv4, h.template.Prefixes.IPv6
	module, err := ctx.App(appName)
	if err != nil {
		return err
	}
	hangup.Expose(ctx)
	return module.(*App).add(h)
}

// Cleanup implements [caddy.CleanerUpper].
func (h *Handler) Cleanup() (err error) {
	if h.limit != nil {
		_, err = limits.Delete(h.Name)
	}
	return err
}

// options are the options of the gate.
func (h *Handler) options() gate.Options {
	wall := func() int64 { return time.Now().UnixNano() }
	return gate.Options{Min: h.Min, Max: h.Max, MaxWait: time.Duration(h.MaxWait), Classes: len(h.names), Wall: wall}
}

// keySeed hashes keys. It is secret, so that nobody can choose keys that look alike.
var keySeed = maphash.MakeSeed()

var errTooEarly = errors.New("TLS handshake not complete, the client's address cannot be verified")

// sort finds the key and the class of a request. One without a class that the handler knows is in the last one.
func (h *Handler) sort(s *slot) (id uint64, class int, err error) {
	r := &s.request
	if h.template.HasAddress && r.TLS != nil && !r.TLS.HandshakeComplete {
		return 0, 0, caddyhttp.Error(http.StatusTooEarly, errTooEarly)
	}
	text, err := h.template.Expand(r)
	if err != nil { // it has different values for a placeholder
		return 0, 0, caddyhttp.Error(http.StatusBadRequest, err)
	}
	class = len(h.names) - 1
	if h.priority != nil {
		name, err := h.priority.Expand(r)
		if err != nil {
			return 0, 0, caddyhttp.Error(http.StatusBadRequest, err)
		}
		if i := slices.Index(h.names, h.priority.NormalizeName(name)); i >= 0 {
			class = i
		}
	}
	return maphash.String(keySeed, text), class, nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
