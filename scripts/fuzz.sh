#!/usr/bin/env bash
# Runs every fuzz target of the module for $FUZZTIME each (2s if unset).
#
# go test -fuzz would instrument, and so compile again, all that a package
# imports: with Caddy that takes minutes. Here the module's own packages alone
# are instrumented, so the fuzzer is guided by what it is to test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-2s}
cache=$(go env GOCACHE)/fuzz
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bin=$tmp/fuzz.test
log=$tmp/log

# cut_short reports whether the run in $log failed for nothing but the clock: Go
# before 1.27 may report the end of -fuzztime itself as a failure
# (https://go.dev/issue/75804). A finding says more than that.
cut_short() {
	[[ $(sed -n '/^--- FAIL/,$p' "$log" | sed -e 1d -e '/^FAIL$/d') == "    context deadline exceeded" ]]
}

# Assigned first, because a loop would hide that the command failed.
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./...)
count=0
while read -r package dir; do
	# Packages without a target are not compiled.
	[[ -n $package ]] && grep -qs '^func Fuzz' "$dir"/*_test.go || continue
	go test -c -gcflags './...=-d=libfuzzer' -o "$bin" "$package"
	if ! (cd "$dir" && "$bin" -test.list '^Fuzz') </dev/null >"$log"; then
		cat "$log" >&2
		exit 1
	fi
	sed -n '/^Fuzz[^ ]*$/p' "$log" >"$tmp/targets"
	while read -r target; do
		count=$((count + 1))
		echo "fuzz $package $target"
		(cd "$dir" && "$bin" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$fuzztime" \
			-test.fuzzcachedir "$cache/$package") </dev/null 2>&1 | tee "$log" || {
			cut_short || exit 1
			echo "fuzz.sh: the end of -fuzztime was taken for a failure (go.dev/issue/75804): no finding"
		}
	done <"$tmp/targets"
done <<<"$packages"

if [[ $count == 0 ]]; then
	echo "fuzz.sh: found no fuzz target, so nothing was fuzzed" >&2
	exit 1
fi
