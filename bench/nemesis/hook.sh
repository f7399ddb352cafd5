#!/usr/bin/env bash
# Starts, breaks and ends limiters for bench/nemesis, see hook.go. Run from the root of the repository, after make build. The name of
# a case begins with that of its servers, up to a colon. Servers that are not installed print no URL, and their cases are left out.
set -euo pipefail

dir=${TMPDIR:-/tmp}/nemesis-$UID
bin=${NEMESIS_BIN:-$PWD/.bin}
here=$PWD/bench/nemesis
envoy=v1.4.1-0.20260122083618-3fb702589d36 # of github.com/envoyproxy/ratelimit
upstream=${NEMESIS_UPSTREAM:-}

port() { # of a server, by its name
	local names=(redis front1 front2 admin1 admin2 service debug grpc peer1 peer2) i
	for i in "${!names[@]}"; do [[ ${names[i]} != "$1" ]] || echo "127.0.0.1:$((23100 + i))"; done
}

# A server is a file with its command. It leads a process group, which is what signals go to.
define() { printf 'exec %s >>%q 2>&1\n' "$2" "$dir/$1.log" >"$dir/$1.sh"; }
start() {
	setsid bash "$dir/$1.sh" </dev/null >/dev/null 2>&1 &
	echo $! >"$dir/$1.pid"
}
signal() { kill "-$1" -- "-$(<"$dir/$2.pid")"; }

redis() { # whether it writes down what it answers
	define redis "redis-server --bind 127.0.0.1 --port $(port redis | cut -d: -f2) --save '' --appendonly ${1:-no} --dir $dir"
	start redis
	until redis-cli -p "$(port redis | cut -d: -f2)" ping >/dev/null 2>&1; do sleep 0.1; done
}

caddy() { # number, more lines of the zone, store
	cat >"$dir/front$1.caddyfile" <<-END
		{
			admin $(port "admin$1")
			persist_config off
			auto_https off
		}
		http://$(port "front$1") {
			bind 127.0.0.1
			rate_limit {
				zone clients {
					key {http.request.header.X-Client}
					rate 50/5s
					$2
				}
				store $3
			}
			reverse_proxy $upstream
		}
	END
	define "front$1" "env XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir $bin/caddy run --adapter caddyfile --config $dir/front$1.caddyfile"
	start "front$1"
}

caddys() { # more lines of the zone, and whether Redis writes
	redis "${2:-no}"
	caddy 1 "$1" "redis { 
		address $(port redis)
	}"
	caddy 2 "$1" "redis {
		address $(port redis)
	}"
}

nginx() {
	cat >"$dir/nginx.conf" <<-END
		daemon off;
		pid $dir/nginx.master;
		error_log $dir/nginx.error;
		worker_processes auto;
		events {}
		http {
			access_log off;
			client_body_temp_path $dir/1; proxy_temp_path $dir/2; fastcgi_temp_path $dir/3; uwsgi_temp_path $dir/4; scgi_temp_path $dir/5;
			limit_req_zone \$http_x_client zone=clients:10m rate=10r/s;
			limit_req_status 429;
			server {
				listen $(port front1);
				location / {
					limit_req zone=clients burst=49 nodelay;
					proxy_set_header Host \$host;
					proxy_pass http://$upstream;
				}
			}
		}
	END
	define front1 "nginx -c $dir/nginx.conf -e $dir/nginx.error"
	start front1
}

haproxy() { # number, whether the table is shared
	local table="stick-table type string len 64 size 100k expire 10s store $3" peers=''
	if [[ $2 == shared ]]; then
		table+=' peers fleet'
		peers="peers fleet
	peer one $(port peer1)
	peer two $(port peer2)"
	fi
	cat >"$dir/front$1.cfg" <<-END
		defaults
		    mode http
		    timeout connect 5s
		    timeout client 30s
		    timeout server 30s
		$peers
		backend clients
		    $table
		backend app
		    server app $upstream
		frontend web
		    bind $(port "front$1")
		    http-request track-sc0 req.hdr(X-Client) table clients
		    $4
		    default_backend app
	END
	define "front$1" "haproxy -db -L $([[ $1 == 1 ]] && echo one || echo two) -f $dir/front$1.cfg"
	start "front$1"
}

# Two ways to count: all requests, as HAProxy's documentation does, or those that pass.
all=('http_req_rate(5s)' 'http-request deny deny_status 429 if { sc_http_req_rate(0) gt 50 }')
passed=('gpc0,gpc0_rate(5s)' 'http-request deny deny_status 429 if { sc_gpc0_rate(0) ge 50 }
		    http-request sc-inc-gpc0(0)')

gateways() { # limiter, store
	local i
	for i in 1 2; do
		define "front$i" "$bin/nemesis-gateway -limiter $1 -store $2 -listen $(port "front$i") -upstream $upstream"
		start "front$i"
	done
}

envoy() {
	redis
	mkdir -p "$dir/envoy/config"
	printf 'domain: nemesis\ndescriptors:\n- key: client\n  rate_limit: {unit: second, requests_per_unit: 10}\n' >"$dir/envoy/config/c.yaml"
	local p=127.0.0.1
	define service "env USE_STATSD=false REDIS_SOCKET_TYPE=tcp REDIS_URL=$(port redis) RUNTIME_ROOT=$dir RUNTIME_SUBDIRECTORY=envoy \
RUNTIME_WATCH_ROOT=false HOST=$p PORT=$(port service | cut -d: -f2) GRPC_HOST=$p GRPC_PORT=$(port grpc | cut -d: -f2) \
DEBUG_HOST=$p DEBUG_PORT=$(port debug | cut -d: -f2) $bin/envoy-ratelimit"
	start service
	until curl -so /dev/null "http://$(port service)/healthcheck"; do sleep 0.1; done
	gateways envoy "$(port service)"
}

# build_envoy builds the service out of the Go module proxy.
build_envoy() (
	[[ ! -x $bin/envoy-ratelimit ]] || return 0
	cd "$(mktemp -d)"
	cat >main.go <<-END
		package main

		import (
			"github.com/envoyproxy/ratelimit/src/service_cmd/runner"
			"github.com/envoyproxy/ratelimit/src/settings"
		)

		func main() {
			r := runner.NewRunner(settings.NewSettings())
			r.Run()
		}
	END
	go mod init peer && go get "github.com/envoyproxy/ratelimit@$envoy" && go mod tidy && go build -o "$bin/envoy-ratelimit" .
)

up() {
	down
	mkdir -p "$dir"
	local fronts='front1 front2' f
	case $1 in
	memory) caddy 1 '' memory && fronts=front1 ;;
	strict) caddys '' ;;
	strict-local) caddys 'on_store_error local' ;;
	strict-deny) caddys 'on_store_error deny' ;;
	strict-saved) caddys 'on_store_error deny' yes ;;
	lend) caddys $'lend 100ms\n\t\t\ton_store_error local' ;;
	nginx) type -P nginx >/dev/null || return 0; nginx && fronts=front1 ;;
	haproxy) type -P haproxy >/dev/null || return 0; haproxy 1 alone "${all[@]}" && fronts=front1 ;;
	haproxy-passed) type -P haproxy >/dev/null || return 0; haproxy 1 alone "${passed[@]}" && fronts=front1 ;;
	haproxy-peers) type -P haproxy >/dev/null || return 0; haproxy 1 shared "${passed[@]}" && haproxy 2 shared "${passed[@]}" ;;
	envoy) build_envoy >&2 && envoy ;;
	redis_rate | ulule | throttled) redis && gateways "$1" "$(port redis)" ;;
	*) echo "no servers $1" >&2 && return 1 ;;
	esac
	for f in $fronts; do echo "http://$(port "$f")/"; done
}

down() {
	local f
	for f in "$dir"/*.pid; do
		[[ -e $f ]] || continue
		kill -KILL -- "-$(<"$f")" 2>/dev/null || true
	done
	rm -rf "$dir"
}

# versions begins with that of Redis.
versions() {
	redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/'
	! type -P nginx >/dev/null || command nginx -v 2>&1 | sed 's,.*/,nginx ,'
	! type -P haproxy >/dev/null || command haproxy -v | sed -n "1s,version ,,;1s, 20.*,,p"
	echo "envoyproxy/ratelimit $envoy"
	sed -n 's,^\tgithub.com/\(go-redis/redis_rate\|throttled\|ulule\)/,\1 ,p' bench/go.mod | sed 's,throttled/,,;s,limiter/,,'
}

case $1 in
up) up "${2%%:*}" ;;
down) down ;;
start) start "$2" ;;
kill) signal KILL "$2" ;;
freeze) signal STOP "$2" ;;
thaw) signal CONT "$2" ;;
versions) versions | paste -sd, | sed 's/,/, /g' ;;
*) echo "no action $1" >&2 && exit 1 ;;
esac
