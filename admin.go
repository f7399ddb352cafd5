package caddyratelimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(AdminAPI{})
}

// AdminAPI is a module that shows zones, keys and stores at Caddy's admin endpoint, and
// resets keys. It takes no options. The routes, all below /rate_limit/:
//
//	GET    zones                what is limited, and what became of the requests
//	GET    zones/<zone>         one of them
//	GET    zones/<zone>/key     what a key has used; charges nothing
//	DELETE zones/<zone>/key     resets a key
//	GET    zones/<zone>/top     which keys come, and are refused, most often
//	GET    top                  the same for all zones
//	GET    stores               how the stores are
//	GET    decisions            decisions as they are made, as server-sent events
type AdminAPI struct{}

// CaddyModule returns the Caddy module information.
func (AdminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.rate_limit",
		New: func() caddy.Module { return new(AdminAPI) },
	}
}

const adminPath = "/rate_limit/"

// Routes implements [caddy.AdminRouter].
func (AdminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: adminPath, Handler: caddy.AdminHandlerFunc(serveAdmin)}}
}

// adminCall is a request to the admin API.
type adminCall struct {
	http.ResponseWriter
	request *http.Request
	zone    *runningZone // that the path names, if it names one
	query   url.Values
}

// adminRoute is what can be done at a path.
type adminRoute map[string]func(*adminCall) error // by method

// adminRoutes are by path, with * for the name of a zone.
var adminRoutes = map[string]adminRoute{
	"zones":       {http.MethodGet: showZones},
	"zones/*":     {http.MethodGet: showZone},
	"zones/*/key": {http.MethodGet: showKey, http.MethodDelete: resetKey},
	"zones/*/top": {http.MethodGet: showTop},
	"top":         {http.MethodGet: showTop},
	"stores":      {http.MethodGet: showStores},
	"decisions":   {http.MethodGet: streamDecisions},
}

func serveAdmin(w http.ResponseWriter, r *http.Request) error {
	c := &adminCall{ResponseWriter: w, request: r}
	// Names may hold slashes: they are percent-encoded, so it is the encoded path that counts.
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), adminPath), "/")
	zone := ""
	if len(path) > 1 && path[0] == "zones" && path[1] != "" {
		zone, path[1] = path[1], "*"
	}
	route, ok := adminRoutes[strings.Join(path, "/")]
	if !ok {
		return adminError(http.StatusNotFound, "no such path: %s; there are zones, zones/{zone}, zones/{zone}/key, zones/{zone}/top, top, stores and decisions", r.URL.EscapedPath())
	}
	serve, ok := route[r.Method]
	if !ok {
		return adminError(http.StatusMethodNotAllowed, "method not allowed: %s %s", r.Method, r.URL.EscapedPath())
	}
	var err error
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return adminError(badRequest, "the query: %w; percent-encode its values", err)
	}
	if zone != "" {
		name, err := url.PathUnescape(zone)
		if err != nil {
			return adminError(badRequest, "the zone's name: %w; percent-encode it", err)
		}
		if c.zone, err = findZone(name); err != nil {
			return err
		}
	}
	return serve(c)
}

func findZone(name string) (*runningZone, error) {
	zones := runningZones()
	names := make([]string, len(zones))
	for i, z := range zones {
		if z.name == name {
			return z, nil
		}
		names[i] = fmt.Sprintf("%q", z.name)
	}
	if len(zones) == 0 {
		return nil, adminError(http.StatusNotFound, "no zone %q: the config that runs has no zones", name)
	}
	return nil, adminError(http.StatusNotFound, "no zone %q in the config that runs; there are %s", name, strings.Join(names, ", "))
}

const badRequest = http.StatusBadRequest

// adminError is an error as Caddy's admin endpoint answers it.
func adminError(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

// known says that a query has a parameter that nobody reads.
func (c *adminCall) known(names ...string) error {
	for name := range c.query {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			return adminError(http.StatusBadRequest, "unknown parameter %q, must be one of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// answer sends JSON, for people too.
func (c *adminCall) answer(value any) error {
	text, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	c.Header().Set("Content-Type", "application/json")
	c.Header().Set("Cache-Control", "no-store")
	_, err = c.Write(append(text, '\n'))
	return err
}
