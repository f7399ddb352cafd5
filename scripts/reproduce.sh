#!/usr/bin/env bash
# Makes a release of the same commit twice, and fails if a byte differs. Each is made from a clone of its own
# at another path. The second has an empty build cache, so it compiles all: some minutes for each target.
#
#   reproduce.sh <version> [<os>/<arch>...]   the targets, or linux/amd64
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?the version is missing, such as v1.2.3}
targets=("${@:2}")
[[ $# -gt 1 ]] || targets=(linux/amd64)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
commit=$(git rev-parse HEAD) # which stays the same if another one comes meanwhile
# release makes the release in a clone.
release() {
	git clone -q --no-hardlinks . "$1"
	git -C "$1" checkout -q --detach "$commit"
	DIST=$1.dist "$1/scripts/release.sh" "$version" "${targets[@]}"
}
release "$tmp/first"
GOCACHE=$tmp/cache release "$tmp/second/elsewhere"

diff -r "$tmp/first.dist" "$tmp/second/elsewhere.dist"
cat "$tmp/first.dist/SHA256SUMS"
echo "reproduce.sh: twice the same"
