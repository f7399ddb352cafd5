package clientip

import (
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TrustedBy returns the proxies whose headers count for a server that is provisioned: ranges of addresses, or the name of the
// module that has them. It reads a field that Caddy does not export. With another version of Caddy that has no such field, it
// knows of no proxies.
func TrustedBy(server *caddyhttp.Server) (trusted []string) {
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
