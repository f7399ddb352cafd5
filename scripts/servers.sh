#!/usr/bin/env bash
# Runs tests against other servers than the one on PATH: Redis and Valkey of the Debian releases in $SUITES.
# "servers.sh fetch" only gets them, and "servers.sh COMMAND..." runs another command under each. They are
# unpacked into .bin/servers, with the C library of their release, and nothing is installed. What cannot be
# had is named, and no failure: a machine without apt-get or a network tests none.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra suites <<<"${SUITES:-bookworm trixie sid}"
servers=$PWD/.bin/servers
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

say() { echo "servers.sh: $*"; }

# mirror prints the address of the Debian archive that this machine uses.
mirror() {
	[[ -n ${DEBIAN_MIRROR-} ]] && echo "$DEBIAN_MIRROR" && return
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 -E '/debian/?$'
}

# fetch unpacks the servers of a release into $servers/SUITE/root. What is there stays.
fetch() {
	local dir=$servers/$1 from packages names file
	[[ -d $dir/root ]] && return
	command -v apt-get >/dev/null || { say "$1: no apt-get"; return 1; }
	[[ -r $keyring ]] || { say "$1: no keyring of the Debian archive (package debian-archive-keyring)"; return 1; }
	from=$(mirror) || { say "$1: no Debian archive among apt's sources; DEBIAN_MIRROR=URL names one"; return 1; }
	rm -rf "$dir"
	mkdir -p "$dir"/{lists,cache/archives}/partial "$dir/debs" "$dir/unpacked"
	echo "deb [signed-by=$keyring] $from $1 main" >"$dir/sources"
	# With a state of its own, apt takes no package for installed and knows no other source.
	local apt=(apt-get -qq -o "Dir::Etc::SourceList=$dir/sources" -o Dir::Etc::SourceParts=- -o "Dir::State=$dir"
		-o "Dir::State::Lists=$dir/lists" -o Dir::State::Status=/dev/null -o "Dir::Cache=$dir/cache"
		-o APT::Sandbox::User=root -o Acquire::Retries=3 -o Acquire::http::Timeout=20)
	if ! "${apt[@]}" update >"$log" 2>&1 ||
		! packages=$("${apt[@]}" --print-uris --no-install-recommends install redis-server 2>"$log"); then
		say "$1: no packages: $(tail -n 1 "$log")"
		return 1
	fi
	# Not every release has Valkey.
	packages+=$'\n'$("${apt[@]}" --print-uris --no-install-recommends install valkey-server 2>/dev/null)
	# A process needs the libraries among them, not what installs and runs a service.
	mapfile -t names < <(awk '$2 ~ /^(lib|zlib|redis-|valkey-)/ { split($2, name, "_"); print name[1] }' <<<"$packages" | sort -u)
	(cd "$dir/debs" && "${apt[@]}" download "${names[@]}" >"$log" 2>&1) || { say "$1: $(tail -n 1 "$log")"; return 1; }
	for file in "$dir"/debs/*.deb; do
		dpkg-deb -x "$file" "$dir/unpacked" || return 1
	done
	rm -rf "$dir"/{debs,lists,cache}
	mv "$dir/unpacked" "$dir/root"
}

# wrap writes, for each server that a release has, a redis-server that starts it under the release's own C
# library, in a directory named for its version, and prints that directory.
wrap() {
	local root=$servers/$1/root kind loader path version dir
	loader=$(find "$root" -name 'ld-linux*.so.*' -print -quit)
	path=$(find "$root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd :)
	for kind in redis valkey; do
		[[ -x $root/usr/bin/$kind-server ]] || continue
		local run=("$loader" --argv0 redis-server --library-path "$path" "$root/usr/bin/$kind-server")
		version=$("${run[@]}" --version | grep -o -m 1 'v=[0-9.]*') || { say "$1: $kind does not start" >&2; continue; }
		dir=$servers/$kind-${version#v=}
		mkdir -p "$dir"
		{ echo '#!/bin/sh'; printf 'exec'; printf " '%s'" "${run[@]}"; echo ' "$@"'; } >"$dir/redis-server"
		chmod +x "$dir/redis-server"
		echo "$dir"
	done
}

# tests is what runs under each server: the store's own tests, and some of faults at a Caddy.
tests() {
	go test -vet=off -count=1 -timeout 20m -tags deep ./redisstore/... &&
		go test -tags deep -vet=off -count=1 -timeout 10m -run 'TestFaultsOf|TestDoctor|TestWrongPassword|TestEviction' ./integration/{cli,faults,floods,limits}
}

mkdir -p "$servers"
found=()
for suite in "${suites[@]}"; do
	fetch "$suite" && mapfile -t -O "${#found[@]}" found < <(wrap "$suite")
done
[[ ${1-} == fetch ]] && exit
command=("$@")
[[ ${#command[@]} -gt 0 ]] || command=(tests)

table=()
failed=0
here=$(redis-server --version | grep -o -m 1 'v=[0-9.]*')
for dir in "${found[@]}"; do
	[[ ${dir##*/} != "redis-${here#v=}" ]] || continue # make test tests that one
	begin=$SECONDS verdict=passed
	if ! PATH=$dir:$PATH REQUIRE_REDIS=1 "${command[@]}" >"$log" 2>&1; then
		verdict=failed failed=$((failed + 1))
		say "${dir##*/}:"
		grep -v -E '^(ok|\?) ' "$log"
	fi
	table+=("$(printf '%-14s %s  %4d s' "${dir##*/}" "$verdict" $((SECONDS - begin)))")
done
[[ ${#table[@]} -gt 0 ]] || { say "found no other servers here: none tested"; exit 0; }
printf '%s\n' "${table[@]}"
[[ $failed == 0 ]]
