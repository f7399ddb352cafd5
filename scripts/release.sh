#!/usr/bin/env bash
# Makes what a release publishes.
#
#   release.sh compile <os> <arch> <binary> [<version>]   compiles a Caddy with this module
#   release.sh <version> [<os>/<arch>...]                 writes archives for these targets, or for all of
#                                                         them, a list of the parts of each (an SBOM, in
#                                                         CycloneDX), and SHA256SUMS into dist/
#
# DIST is the directory to write into. The same commit and the same Go give the same bytes: reproduce.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=({linux,darwin,windows,freebsd}/{amd64,arm64})

# compile makes a binary for a system. "caddy version" says which version of this module is in it. Settings
# of Go that change the binary are fixed here. The tags are those of Caddy's own binaries: they leave out
# databases that Caddy does not use.
compile() {
	local version=
	[[ -z ${4:-} ]] || version=" -X github.com/caddyserver/caddy/v2.CustomVersion=caddyratelimit-$4"
	GOFLAGS='' GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0 GOOS=$1 GOARCH=$2 go build \
		-trimpath -buildvcs=false -tags nobadger,nomysql,nopgx -ldflags "-s -w$version" -o "$3" ./cmd/caddy
}

# archive compiles for a target, and packs the binary with its license, changes and docs, as they were committed.
archive() {
	local system=${1%/*} arch=${1#*/} binary=caddy
	[[ $system != windows ]] || binary=caddy.exe
	local name=caddyratelimit_${version}_${system}_${arch}
	local dir=$tmp/$name
	mkdir "$dir"
	compile "$system" "$arch" "$dir/$binary" "$version"
	"$tmp/tools/cyclonedx-gomod" bin -json -std -noserial -notimestamp -version "$version" \
		-output "$dist/$name.cdx.json" "$dir/$binary"
	git archive HEAD LICENSE ./*.md docs examples | tar -x -C "$dir" --exclude='*_test.go'
	find "$dir" -exec touch -d "@$commit_time" {} +
	if [[ $system == windows ]]; then
		(cd "$tmp" && find "$name" | LC_ALL=C sort | TZ=UTC zip -q -X -@ "$dist/$name.zip")
	else
		tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w -c "$name" | gzip -n -9 >"$dist/$name.tar.gz"
	fi
	rm -r "$dir"
	echo "release.sh: $name"
}

if [[ ${1:-} == compile ]]; then
	compile "${@:2}"
	exit
fi

version=${1:-}
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "release.sh: the version must be like v1.2.3, got \"$version\"" >&2
	exit 2
fi
[[ $# == 1 ]] || targets=("${@:2}")
scripts/changes.sh "$version" >/dev/null

mkdir -p "${DIST:-dist}"
dist=$(cd "${DIST:-dist}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
commit_time=$(git log -1 --format=%ct)
# The list of parts has the checksum of the tool that wrote it.
GOFLAGS='' CGO_ENABLED=0 go -C tools/sbom build -trimpath -buildvcs=false -o "$tmp/tools/" tool
for target in "${targets[@]}"; do
	archive "$target"
done
(cd "$dist" && sha256sum -- caddyratelimit_"$version"_* >SHA256SUMS)
