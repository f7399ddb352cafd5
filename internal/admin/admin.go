// Package admin is the admin API of a running Caddy: zones, keys, stores, and decisions as they
// are made.
package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func init() {
	caddy.RegisterModule(AdminAPI{})
}

// AdminAPI is a module that shows zones, keys and stores at Caddy's admin endpoint, and
// changes what holds for keys. It takes no options. The routes, all below /rate_limit/:
//
//	GET    zones                      what is limited, and what became of the requests
//	GET    zones/<zone>               one of them
//	GET    zones/<zone>/key           what a key has used; charges nothing
//	DELETE zones/<zone>/key           resets a key
//	PUT    zones/<zone>/key/override  gives a key a limit of its own, or none
//	DELETE zones/<zone>/key/override  takes that away
//	PUT    zones/<zone>/key/ban       bans a key
//	DELETE zones/<zone>/key/ban       ends its ban
//	GET    key                        what a key has used in each zone
//	GET    zones/<zone>/top           which keys come, and are refused, most often
//	GET    top                        the same for all zones
//	GET    stores                     how the stores are
//	GET    decisions                  decisions as they are made, as server-sent events
type AdminAPI struct{}

// CaddyModule returns the Caddy module information.
func (AdminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.rate_limit",
		New: func() caddy.Module { return new(AdminAPI) },
	}
}

// Routes implements [caddy.AdminRouter].
func (AdminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: adminapi.Path, Handler: caddy.AdminHandlerFunc(serveAdmin)}}
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
	"zones":                {http.MethodGet: showZones},
	"zones/*":              {http.MethodGet: showZone},
	"zones/*/key":          {http.MethodGet: showKey, http.MethodDelete: resetKey},
	"zones/*/key/override": {http.MethodPut: setOverride, http.MethodDelete: clearOverride},
	"zones/*/key/ban":      {http.MethodPut: banKey, http.MethodDelete: pardonKey},
	"zones/*/top":          {http.MethodGet: showTop},
	"key":                  {http.MethodGet: findKey},
	"top":                  {http.MethodGet: showTop},
	"stores":               {http.MethodGet: showStores},
	"decisions":            {http.MethodGet: streamDecisions},
}

func serveAdmin(w http.ResponseWriter, r *http.Request) error {
	c := &adminCall{ResponseWriter: w, request: r}
	// Names may hold slashes: they are percent-encoded, so it is the encoded path that counts.
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), adminapi.Path), "/")
	zone := ""
	if len(path) > 1 && path[0] == "zones" && path[1] != "" {
		zone, path[1] = path[1], "*"
	}
	route, ok := adminRoutes[strings.Join(path, "/")]
	if !ok {
		paths := strings.Join(slices.Sorted(maps.Keys(adminRoutes)), ", ")
		return adminError(http.StatusNotFound, "no such path: %s; there are %s", r.URL.EscapedPath(), strings.ReplaceAll(paths, "*", "{zone}"))
	}
	serve, ok := route[r.Method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(route)), ", ")
		w.Header().Set("Allow", allowed)
		return adminError(http.StatusMethodNotAllowed, "method not allowed: %s %s takes %s", r.Method, r.URL.EscapedPath(), allowed)
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
		if z.Name == name {
			return z, nil
		}
		names[i] = fmt.Sprintf("%q", z.Name)
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
		if !slices.Contains(names, name) {
			return adminError(badRequest, "unknown parameter %q, must be one of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// number reads a parameter.
func (c *adminCall) number(name string, usual, least, most int64) (int64, error) {
	text := c.query.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, adminError(badRequest, "%s must be from %d to %d, got %q", name, least, most, text)
	}
	return n, nil
}

// maxBody bounds what is read of a request's body.
const maxBody = 64 << 10

// body reads the body, which is one JSON object, or empty if all of it may be left out.
// The fields are those that there are.
func (c *adminCall) body(to any, optional bool, fields string) error {
	d := json.NewDecoder(http.MaxBytesReader(c.ResponseWriter, c.request.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more than one object")
		}
	}
	switch tooLarge := new(http.MaxBytesError); {
	case err == nil, err == io.EOF && optional:
		return nil
	case errors.As(err, &tooLarge):
		return adminError(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	return adminError(badRequest, "the body must be a JSON object with %s: %w", fields, err)
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
