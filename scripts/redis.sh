#!/bin/sh
# Makes sure that redis-server is on PATH: the tests start their own. Installs
# it where there is apt-get, and says how to get it elsewhere.
set -eu

found() {
	command -v redis-server >/dev/null 2>&1
}

fail() {
	cat >&2 <<EOF
redis.sh: $1
The tests need redis-server on PATH (they start it themselves, on a free port):
  Debian, Ubuntu   apt-get install redis-server
  Alpine           apk add redis
  macOS            brew install redis
  elsewhere        https://redis.io/docs/latest/operate/oss_and_stack/install/
EOF
	exit 1
}

# Runs a command as root and shows its output only if it failed.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		out=$("$@" 2>&1 </dev/null)
	else
		out=$(sudo "$@" 2>&1)
	fi || {
		status=$?
		printf '%s\n' "$out" >&2
		return "$status"
	}
}

if ! found; then
	command -v apt-get >/dev/null 2>&1 || fail "no redis-server here, and no apt-get to install it"
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1 ||
		fail "no redis-server here, and neither root nor sudo to install it"

	echo "redis.sh: installing redis-server with apt-get" >&2
	# An index that cannot be renewed may still be good enough.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 update ||
		echo "redis.sh: apt-get update failed, going on with the index as it is" >&2
	# RUNLEVEL=1 keeps the package from starting a service of its own.
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
		install -y --no-install-recommends redis-server ||
		fail "apt-get could not install redis-server"
	# Under systemd the package does not ask for the run level.
	if [ -d /run/systemd/system ]; then
		as_root systemctl disable --now redis-server.service || true
	fi
	found || fail "apt-get installed redis-server, but it is not on PATH"
fi

redis-server --version
