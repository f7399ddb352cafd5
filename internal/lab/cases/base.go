package cases

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
)

// baseOf returns the beginning of URLs that have none: the scheme, host and port of the only site. If there are
// several sites, the error says what to do.
func baseOf(c *offline.Config) (string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.App.Servers)) {
		hosts, others := c.Hosts(name)
		if slices.Sort(hosts); len(hosts) == 0 && others {
			hosts = []string{"localhost"}
		}
		for _, host := range slices.Compact(hosts) {
			all = append(all, siteOf(c.App, c.App.Servers[name], host))
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

// siteOf returns the beginning of URLs of a host that a server answers.
func siteOf(app *caddyhttp.App, server *caddyhttp.Server, host string) string {
	scheme, port := "http", ""
	if len(server.Listen) > 0 {
		listen := server.Listen[0]
		port = listen[strings.LastIndexByte(listen, ':')+1:]
	}
	if len(server.TLSConnPolicies) > 0 && port != fmt.Sprint(cmp.Or(app.HTTPPort, caddyhttp.DefaultHTTPPort)) {
		scheme = "https"
	}
	usual := map[string]string{"http": "80", "https": "443"}[scheme]
	if port != "" && port != usual {
		port = ":" + port
	} else {
		port = ""
	}
	return scheme + "://" + strings.ReplaceAll(host, "*", "www") + port
}
