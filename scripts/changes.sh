#!/usr/bin/env bash
# Prints the section of a version in CHANGELOG.md, for the page of its release.
#
#   changes.sh v1.2.3
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?the version is missing, such as v1.2.3}
section=$(awk -v heading="## [${version#v}]" '
	/^## / { inside = index($0, heading) == 1; next }
	/^\[[^]]*\]: / { inside = 0 }
	inside' CHANGELOG.md)
if [[ -z ${section//[[:space:]]/} ]]; then
	echo "changes.sh: CHANGELOG.md has no changes in a section \"## [${version#v}]\"" >&2
	exit 1
fi
printf '%s\n' "$section"
