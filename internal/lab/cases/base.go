package cases

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// redirects is the name of the server that Caddy adds to send clients to https.
const redirects = "remaining_auto_https_redirects"

// baseOf returns the beginning of URLs that have none: the scheme, host and port of the only site. If there are
// several sites, the error says what to do.
func baseOf(app *caddyhttp.App) (string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(app.Servers)) {
		if name != redirects {
			all = append(all, sitesOf(app, app.Servers[name])...)
		}
	}
	switch len(all) {
	case 0:
		return "", errors.New("the config has no server that listens on a port")
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("the config has several sites: write the whole URL, or url %s at the top of the file", all[0])
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
