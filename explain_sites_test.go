package caddyratelimit_test

// awkwardSites have rewrites, handlers that share a zone, bans, queues, error
// routes, and all options that look at single requests.
const awkwardSites = `
http://awkward.test {
	uri strip_prefix /v1
	vars tier {query.tier}
	handle_path /app/* {
		rate_limit {
			zone inner {
				key "{path} {vars.tier}"
				rate 16/500h
			}
			zone double {
				key {client_ip}
				rate 7/500h
			}
		}
		rate_limit {
			zone double {
				key {client_ip}
				rate 7/500h
			}
		}
		respond ok
	}
	handle /v2/* {
		rate_limit {
			zone v2 {
				key {client_ip}
				rate 1/500h
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
				rate 2/500h
			}
			zone plain {
				key "{header.X-User} {method}"
				missing_key reject 401
				block header X-Bad *
				exempt header X-Office a-secret-that-is-long-enough
				rate 1/500h
				ban 5h after 2 refusals in 4h
			}
			zone half {
				key {header.X-User}
				missing_key skip
				rate 2/500h
				enforce 50
			}
			zone priced {
				key {header.X-User}
				cost {header.X-Cost} 1
				events {header.X-Limit} 9
				window 500h
			}
			on_limit problem
		}
		respond ok
	}
	handle /calls {
		rate_limit {
			zone calls {
				key {client_ip}
				cost {http.rate_limit.json.params.cost} 1
				rate 3/500h
			}
			zone methods {
				key {method}
				missing_key reject 401
				block header X-Bad *
				rate 6/500h
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
				enforce 0
			}
			zone cookies {
				key {cookie.session}
				rate 5/500h
			}
		}
		error 418
	}
	handle_errors {
		rate_limit {
			zone errors {
				key {client_ip}
				rate 40/500h
			}
		}
		respond "{err.status_code}" 418
	}
}
`
