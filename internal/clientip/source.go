package clientip

import (
	"reflect"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Source says where a server takes the address of a client from.
type Source struct {
	Server string

	// Trusted are the proxies whose headers count: ranges of addresses, or the name of the
	// module that has them.
	Trusted []string

	// TrustsSockets says that connections over Unix sockets are trusted.
	TrustsSockets bool

	// Strict says that headers are read from the right, so that addresses that clients write
	// themselves do not count.
	Strict bool

	// Headers are the headers, in the order in which they are tried.
	Headers []string
}

// SourceIn returns the source of the server that a handler is loaded for in ctx; nil without one.
func SourceIn(ctx caddy.Context) *Source {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server == nil {
		return nil
	}
	source := SourceOf(server)
	return &source
}

// SourceOf returns the source of a server that is provisioned.
func SourceOf(server *caddyhttp.Server) Source {
	return Source{
		Server: server.Name(), Trusted: trustedBy(server), TrustsSockets: server.TrustedProxiesUnix,
		Strict: server.TrustedProxiesStrict > 0, Headers: server.ClientIPHeaders,
	}
}

// trustedBy reads a field that Caddy does not export. With another version of Caddy that has no such
// field, it knows of no proxies.
func trustedBy(server *caddyhttp.Server) (trusted []string) {
	source := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	if source.Kind() != reflect.Interface || source.IsNil() {
		return nil
	}
	module := reflect.Indirect(source.Elem())
	if module.Kind() == reflect.Struct {
		if ranges := module.FieldByName("Ranges"); ranges.Kind() == reflect.Slice && ranges.Type().Elem().Kind() == reflect.String {
			for i := range ranges.Len() {
				trusted = append(trusted, ranges.Index(i).String())
			}
		}
	}
	if trusted == nil {
		trusted = []string{module.Type().String()}
	}
	return trusted
}
