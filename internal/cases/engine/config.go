// Package engine carries out the cases of caddy rate-limit test: requests go through the routes of a config, and the
// limiter decides them on an imagined clock, in memory. Nothing is started and nothing is sent.
//
// Each case has a world of its own, with unused limits. A request runs in a coroutine, because it may wait, or hold a
// slot while later requests come.
package engine

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Config is a config that is provisioned and does not run.
type Config struct {
	App      *caddyhttp.App
	Handlers []Handler

	// Shared says that all instances share a store, which may be down.
	Shared bool

	// Override returns the override that a text asks for, as 500/1m, exempt, or plan and a name.
	Override func(z *zone.Zone, text string) (*store.Rule, store.Override, error)

	// Describe returns a limit in words.
	Describe func(*store.Rule) string
}

// Handler is a rate limit handler of a config.
type Handler struct {
	Module    caddyhttp.MiddlewareHandler
	Zones     []*zone.Zone
	Status    int
	Instances int // by which limits are divided while the store is down; 0 for as many as there are
	Respond   Responder
	Warnings  map[string][]string // by zone; "" for those of the whole handler
}

// Responder answers what is decided, as in production, but without anything random.
type Responder interface {
	Begin(w http.ResponseWriter, r *http.Request, v *limiter.Verdict) (through http.ResponseWriter, err error)
	Note(v *limiter.Verdict)
	Written(r *http.Request, a *limiter.Answer) limiter.Written
	Serve(c *late.Completion, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error
}

// Engine carries out cases. Its methods are for one goroutine at a time.
type Engine struct {
	config *Config
	index  map[caddyhttp.MiddlewareHandler]int
	zones  [][]*zone.Zone // by handler, with counters of their own
	byName map[string]*zone.Zone
	base   string // the beginning of URLs that are only a path
	noBase string // why there is none
}

// New returns an Engine for a config.
func New(c *Config) (*Engine, error) {
	e := &Engine{config: c, index: make(map[caddyhttp.MiddlewareHandler]int), byName: make(map[string]*zone.Zone)}
	for i, h := range c.Handlers {
		e.index[h.Module] = i
		zones := make([]*zone.Zone, len(h.Zones))
		for j, z := range h.Zones {
			var err error
			if zones[j], err = z.Copy(); err != nil {
				return nil, err
			}
			e.byName[z.Name] = zones[j]
		}
		e.zones = append(e.zones, zones)
	}
	e.base, e.noBase = baseOf(c.App)
	return e, nil
}

// redirects is the name of the server that Caddy adds to send clients to https.
const redirects = "remaining_auto_https_redirects"

// baseOf returns the beginning of URLs that have none: the scheme, host and port of the only site. If there are
// several sites, it returns what to do.
func baseOf(app *caddyhttp.App) (base, why string) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(app.Servers)) {
		if name != redirects {
			all = append(all, sitesOf(app, app.Servers[name])...)
		}
	}
	switch len(all) {
	case 0:
		return "", "the config has no server that listens on a port"
	case 1:
		return all[0], ""
	}
	return "", "the config has several sites: write the whole URL, or url " + all[0] + " at the top of the file"
}

// sitesOf returns the beginnings of URLs that a server answers.
func sitesOf(app *caddyhttp.App, server *caddyhttp.Server) (all []string) {
	scheme, port := "http", ""
	if len(server.Listen) > 0 {
		listen := server.Listen[0]
		port = listen[strings.LastIndexByte(listen, ':')+1:]
	}
	httpPort, httpsPort := app.HTTPPort, app.HTTPSPort
	if httpPort == 0 {
		httpPort = caddyhttp.DefaultHTTPPort
	}
	if httpsPort == 0 {
		httpsPort = caddyhttp.DefaultHTTPSPort
	}
	if len(server.TLSConnPolicies) > 0 && port != fmt.Sprint(httpPort) {
		scheme = "https"
	}
	suffix := ":" + port
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		suffix = ""
	}
	for _, host := range hostsOf(server) {
		all = append(all, scheme+"://"+strings.ReplaceAll(host, "*", "www")+suffix)
	}
	return all
}

// hostsOf returns the hosts of a server's routes; localhost if all hosts are answered alike.
func hostsOf(server *caddyhttp.Server) (hosts []string) {
	for _, route := range server.Routes {
		for _, set := range route.MatcherSets {
			for _, m := range set {
				switch m := m.(type) {
				case caddyhttp.MatchHost:
					hosts = append(hosts, m...)
				case *caddyhttp.MatchHost:
					hosts = append(hosts, *m...)
				}
			}
		}
	}
	slices.Sort(hosts)
	if hosts = slices.Compact(hosts); len(hosts) == 0 {
		return []string{"localhost"}
	}
	return hosts
}
