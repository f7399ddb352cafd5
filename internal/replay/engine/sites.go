package engine

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// sites are the hosts that the routes of a server are for, as its config was written: without the
// redirects to https, which Caddy adds.
type sites struct {
	hosts []caddyhttp.MatchHost
	any   bool // there are routes for all hosts
}

// sitesOf returns the sites of the servers of a config.
func sitesOf(config []byte) (map[string]*sites, error) {
	var parsed struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Routes []struct {
						Match []struct {
							Host caddyhttp.MatchHost `json:"host"`
						} `json:"match"`
					} `json:"routes"`
				} `json:"servers"`
			} `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	all := make(map[string]*sites)
	for name, server := range parsed.Apps.HTTP.Servers {
		s := new(sites)
		for _, route := range server.Routes {
			s.any = s.any || len(route.Match) == 0
			for _, set := range route.Match {
				if set.Host == nil {
					s.any = true
				} else if err := set.Host.Provision(caddy.Context{}); err != nil {
					return nil, err
				} else {
					s.hosts = append(s.hosts, set.Host)
				}
			}
		}
		all[name] = s
	}
	return all, nil
}

// names reports whether a route is for a host by its name.
func (s *sites) names(host string) bool {
	r := (&http.Request{Host: host}).WithContext(context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
	for _, hosts := range s.hosts {
		if matches, err := hosts.MatchWithError(r); err == nil && matches {
			return true
		}
	}
	return false
}
