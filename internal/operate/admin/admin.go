// Package admin serves the admin API of a running Caddy: zones, keys, stores, and decisions as they
// are made.
package admin

import (
	"cmp"
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

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/page"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

func init() {
	caddy.RegisterModule(AdminAPI{})
}

// AdminAPI is a module for Caddy's admin endpoint. It shows zones, keys and stores, resets and bans
// keys, and sets overrides. It has no options. The routes, all below /rate_limit/, of which the first
// four are about all zones, or the one that the parameter zone names:
//
//	GET    zones                      zones: their limits, and their requests by outcome
//	GET    top                        the most frequent, or most refused, keys
//	GET    networks                   the networks with the most requests
//	GET    overrides                  the keys that have an override, or are banned
//	GET    zones/<zone>/key           what a key has used; charges nothing
//	DELETE zones/<zone>/key           resets a key
//	PUT    zones/<zone>/key/override  gives a key its own limit, or exempts it
//	DELETE zones/<zone>/key/override  clears the override of a key
//	PUT    zones/<zone>/key/ban       bans a key
//	DELETE zones/<zone>/key/ban       ends the ban of a key
//	GET    key                        what a key has used in each zone
//	GET    adaptive                   the limits of adaptive_concurrency
//	GET    stores                     the health of the stores
//	GET    doctor                     what is wrong with servers, zones and stores
//	POST   explain                    what would happen to a request; sends and charges nothing
//	GET    decisions                  decisions as they are made, as server-sent events
//	GET    page/                      a page for browsers that shows all this
//	GET    page/stream                what the page shows, as server-sent events
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
	zone    *running.Zone // that the call names; nil if it names none
	query   url.Values

	// fleet has the stores whose instances the call is about, and view is what these report; both are nil if it is about this
	// instance.
	fleet []*running.Store
	view  *fleet.View
}

// operation is what a method does on a path. What it returns is the answer in JSON, nil if it has answered.
type operation struct {
	do         func(*adminCall) (any, error)
	parameters string // with spaces between
}

// keyParameters are the parameters that name a key.
const keyParameters = "key key_base64 part"

const subscription = "zone outcome rate " + keyParameters

// adminRoutes has the operations by path, with * for the name of a zone, and by method.
var adminRoutes = map[string]map[string]operation{
	"zones":                {http.MethodGet: {showZones, "fleet zone"}},
	"top":                  {http.MethodGet: {showTop, "fleet zone by n"}},
	"networks":             {http.MethodGet: {showNetworks, "zone n"}},
	"overrides":            {http.MethodGet: {showOverrides, "zone n"}},
	"zones/*/key":          {http.MethodGet: {showKey, keyParameters}, http.MethodDelete: {resetKey, keyParameters}},
	"zones/*/key/override": {http.MethodPut: {setOverride, keyParameters}, http.MethodDelete: {clearOverride, keyParameters}},
	"zones/*/key/ban":      {http.MethodPut: {banKey, keyParameters}, http.MethodDelete: {unbanKey, keyParameters}},
	"key":                  {http.MethodGet: {findKey, keyParameters}},
	"adaptive":             {http.MethodGet: {func(*adminCall) (any, error) { return adaptive.Running(), nil }, ""}},
	"stores":               {http.MethodGet: {showStores, ""}},
	"doctor":               {http.MethodGet: {showDiagnosis, "fleet"}},
	"explain":              {http.MethodPost: {explainRequest, ""}},
	"decisions":            {http.MethodGet: {streamDecisions, subscription}},
	pagePath:               {http.MethodGet: {servePage, ""}},
	"page/stream":          {http.MethodGet: {streamPage, "fleet " + subscription}},
}

func serveAdmin(w http.ResponseWriter, r *http.Request) error {
	c := &adminCall{ResponseWriter: w, request: r}
	// A name with a slash is percent-encoded, so the encoded path must be split.
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), adminapi.Path), "/")
	zone := ""
	if len(path) > 1 && path[0] == "zones" && path[1] != "" {
		zone, path[1] = path[1], "*"
	}
	route, ok := adminRoutes[routeOf(path)]
	if !ok {
		paths := strings.Join(slices.Sorted(maps.Keys(adminRoutes)), ", ")
		return adminError(http.StatusNotFound, "no such path: %s; the paths are %s",
			r.URL.EscapedPath(), strings.ReplaceAll(paths, "*", "{zone}"))
	}
	operation, ok := route[r.Method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(route)), ", ")
		w.Header().Set("Allow", allowed)
		return adminError(http.StatusMethodNotAllowed, "method not allowed: %s %s takes %s",
			r.Method, r.URL.EscapedPath(), allowed)
	}
	var err error
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return adminError(badRequest, "parsing the query: %w; percent-encode its values", err)
	}
	if err := c.checkParameters(strings.Fields(operation.parameters)); err != nil {
		return err
	}
	if zone, err = url.PathUnescape(zone); err != nil {
		return adminError(badRequest, "parsing the name of the zone: %w; percent-encode it", err)
	}
	if zone != "" || c.query.Has("zone") {
		if c.zone, err = findZone(cmp.Or(zone, c.query.Get("zone"))); err != nil {
			return err
		}
	}
	answer, err := c.serve(routeOf(path), &operation)
	if err != nil || answer == nil {
		return err
	}
	return c.writeJSON(answer)
}

// routeOf returns the path of a route. The files of the page share one.
func routeOf(path []string) string {
	if len(path) == 2 && path[0]+"/" == pagePath && page.Has(path[1]) {
		return pagePath
	}
	return strings.Join(path, "/")
}

// zones returns the zone that the call names, or all.
func (c *adminCall) zones() []*running.Zone {
	if c.zone != nil {
		return []*running.Zone{c.zone}
	}
	return running.Zones()
}

// each returns what is shown of zones.
func each[T any](zones []*running.Zone, show func(*running.Zone) T) []T {
	answers := make([]T, len(zones))
	for i, z := range zones {
		answers[i] = show(z)
	}
	return answers
}

func findZone(name string) (*running.Zone, error) {
	zones := running.Zones()
	if i := slices.IndexFunc(zones, func(z *running.Zone) bool { return z.Name == name }); i >= 0 {
		return zones[i], nil
	}
	if len(zones) == 0 {
		return nil, adminError(http.StatusNotFound, "no zone %q: the running config has no zones", name)
	}
	quoted := each(zones, func(z *running.Zone) string { return strconv.Quote(z.Name) })
	hint := suggest.Hint(name, each(zones, func(z *running.Zone) string { return z.Name }))
	return nil, adminError(http.StatusNotFound, "no zone %q in the running config; its zones are %s%s", name, strings.Join(quoted, ", "), hint)
}

const badRequest = http.StatusBadRequest

// adminError returns an error that Caddy's admin endpoint answers with this status.
func adminError(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

// checkParameters returns an error if the query has other parameters than these.
func (c *adminCall) checkParameters(names []string) error {
	for name := range c.query {
		switch {
		case len(names) == 0:
			return adminError(badRequest, "unknown parameter %q: %s takes none", name, c.request.URL.EscapedPath())
		case !slices.Contains(names, name):
			return adminError(badRequest, "unknown parameter %q, must be one of %s%s", name, strings.Join(names, ", "), suggest.Hint(name, names))
		}
	}
	return nil
}

// intParameter reads a parameter that is a number from lowest to highest.
func (c *adminCall) intParameter(name string, defaultValue, lowest, highest int64) (int64, error) {
	text := c.query.Get(name)
	if text == "" {
		return defaultValue, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, adminError(badRequest, "%s must be from %d to %d, got %q", name, lowest, highest, text)
	}
	return n, nil
}

// maxBody is the largest accepted body of a request, in bytes.
const maxBody = 1 << 20

// readBody decodes the body, which must be one JSON object, or may be empty if it is optional. The
// error lists the fields.
func (c *adminCall) readBody(to any, optional bool, fields string) error {
	d := json.NewDecoder(http.MaxBytesReader(c.ResponseWriter, c.request.Body, maxBody))
	d.DisallowUnknownFields()
	d.UseNumber()
	err := d.Decode(to)
	if _, more := d.Token(); err == nil && more != io.EOF {
		err = errors.New("there is more than one object")
	}
	switch tooLarge := new(http.MaxBytesError); {
	case err == nil, err == io.EOF && optional:
		return nil
	case errors.As(err, &tooLarge):
		return adminError(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	return adminError(badRequest, "the body must be a JSON object with %s: %w", fields, err)
}

// writeJSON answers with JSON that people can read, too.
func (c *adminCall) writeJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	c.Header().Set("Content-Type", "application/json")
	c.Header().Set("Cache-Control", "no-store")
	_, err = c.Write(append(text, '\n'))
	return err
}
