#!/usr/bin/env bash
# simulate.sh runs whole fleets, see "make simulate": one process for each core, because a world keeps to one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
go test -tags deep -c -o "$binary" ./internal/testing/world

cores=$(nproc)
if [[ -n ${SEED:-} ]]; then
  cores=1
fi

cd internal/testing/world
processes=()
for ((i = 0; i < cores; i++)); do
  "$binary" -test.run '^TestSimulate$' -test.timeout 0 -test.v &
  processes+=($!)
done
failed=0
for process in "${processes[@]}"; do
  wait "$process" || failed=1
done
exit "$failed"
