package caddyratelimit_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// globalOptions matches the block of global options of a recipe.
var globalOptions = regexp.MustCompile(`(?ms)\A\{\n.*?^\}\n`)

// recipeSites returns the sites of the recipes as parts of one config in which nothing expires
// during a test. Each recipe has hosts of its own.
func recipeSites(t *testing.T, upstream string) (config string, hosts []string) {
	t.Helper()
	recipes := ""
	for _, page := range []string{"docs/recipes.md", "docs/recipes-api.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		recipes += string(text)
	}
	endless := regexp.MustCompile(`(window +)\d+[ms]\b|(\d/)1[ms]\b`)
	site := regexp.MustCompile(`(?m)^([a-z.]*example\.com) \{$`)
	for i, match := range regexp.MustCompile("(?ms)^## ([^\n]*)\n(?:[^#`].*?)?^```caddyfile\n(.*?)^```$").FindAllStringSubmatch(recipes, -1) {
		text := globalOptions.ReplaceAllString(match[2], "")
		text = strings.Replace(text, "*.example.com {", fmt.Sprintf("http://*.r%d.example.com {", i), 1)
		for _, host := range site.FindAllStringSubmatch(text, -1) {
			hosts = append(hosts, fmt.Sprintf("r%d.%s", i, host[1]))
		}
		config += site.ReplaceAllString(text, fmt.Sprintf("http://r%d.$1 {", i))
	}
	config = endless.ReplaceAllString(config, "${1}${2}500h")
	for _, pair := range [][2]string{
		{"window day", "window month"},
		{"localhost:9000", upstream},
		{"localhost:9001", upstream},
		{"max_wait 5s", "max_wait 1ms"}, // Retry-After is never less than the t of RateLimit, which does not know of it
		{"198.51.100.0/24", "127.0.0.64/26"},
		{"192.0.2.0/24", "127.0.0.3"},
		{"203.0.113.7", "127.0.0.4"},
	} {
		if !strings.Contains(config, pair[0]) {
			t.Fatalf("no recipe says %q", pair[0])
		}
		config = strings.ReplaceAll(config, pair[0], pair[1])
	}
	return config, hosts
}

// awkwardSites are what the recipes lack: rewrites, handlers that share a zone, bans, queues, error
// routes, and all options that look at single requests.
const awkwardSites = `
http://awkward.test {
	uri strip_prefix /v1
	vars tier {query.tier}
	handle_path /app/* {
		rate_limit {
			zone inner {
				key "{path} {vars.tier}"
				events 16
				window 500h
			}
			zone double {
				key {client_ip}
				events 7
				window 500h
			}
		}
		rate_limit {
			zone double {
				key {client_ip}
				events 7
				window 500h
			}
		}
		respond ok
	}
	handle /v2/* {
		rate_limit {
			zone v2 {
				key {client_ip}
				events 1
				window 500h
				ban 5h after 2 refusals in 4h
			}
		}
	}
	handle /queue {
		rate_limit {
			zone turns {
				key {header.X-User}
				algorithm leaky_bucket 1/20h
				mode queue
				burst 3
				max_wait 1m
			}
		}
	}
	handle /plain {
		rate_limit {
			zone aliases {
				key {header.X_User}
				missing_key skip
				events 2
				window 500h
			}
			zone plain {
				key "{header.X-User} {method}"
				missing_key reject 401
				block header X-Bad *
				exempt header X-Office a-secret-that-is-long-enough
				events 1
				window 500h
				ban 5h after 2 refusals in 4h
			}
			zone half {
				key {header.X-User}
				missing_key skip
				events 2
				window 500h
				enforce 50
			}
			zone priced {
				key {header.X-User}
				cost {header.X-Cost} 1
				events {header.X-Limit} 9
				window 500h
				invalid_limit 402
			}
			on_limit problem
		}
		respond ok
	}
	handle /calls {
		rate_limit {
			zone calls {
				key {client_ip}
				cost_request json params.cost
				events 3
				window 500h
			}
			zone methods {
				key {method}
				missing_key reject 401
				block header X-Bad *
				events 6
				window 500h
			}
			on_limit problem
		}
		respond ok
	}
	handle {
		rate_limit {
			zone queued {
				key {header.X-User}
				algorithm leaky_bucket 1/500h
				mode queue
				burst 2
				dry_run
			}
			zone cookies {
				key {cookie.session}
				events 5
				window 500h
			}
		}
		error 418
	}
	handle_errors {
		rate_limit {
			zone errors {
				key {client_ip}
				events 40
				window 500h
			}
		}
		respond "{err.status_code}" 418
	}
}
`
