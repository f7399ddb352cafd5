#!/usr/bin/env bash
# Runs the tests, or the command in the arguments, $ROUNDS times (3 if unset) while other
# work keeps every core busy, and once with GOMAXPROCS=1 on a machine that is left alone.
# What fails here depends on the machine's speed. Says how long each run took, and what
# failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${ROUNDS:-3}
command=("$@")
[[ ${#command[@]} -gt 0 ]] || command=(go test -race -count=1 -parallel 4 -timeout 40m ./...)
log=$(mktemp)
busy=()
failed=0

# idle ends what keeps the cores busy.
idle() {
	[[ ${#busy[@]} == 0 ]] || kill "${busy[@]}" 2>/dev/null
	wait "${busy[@]}" 2>/dev/null
	busy=()
}
trap 'idle; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# load keeps every core busy until idle is called, and for two hours at most.
load() {
	for _ in $(seq "$(getconf _NPROCESSORS_ONLN)"); do
		(while ((SECONDS < 7200)); do :; done) &
		busy+=($!)
	done
}

# run runs the command and says how that went.
run() {
	local begin=$SECONDS status=passed
	"${command[@]}" >"$log" 2>&1 || status=failed
	echo "stress.sh: $1: $status after $((SECONDS - begin)) s"
	if [[ $status == failed ]]; then
		failed=$((failed + 1))
		grep -v -E '^(ok|\?) ' "$log"
	else
		grep -E '^ok ' "$log"
	fi
}

load
for round in $(seq "$rounds"); do
	run "round $round of $rounds, all cores busy"
done
idle
GOMAXPROCS=1 run "GOMAXPROCS=1"
[[ $failed == 0 ]] || { echo "stress.sh: $failed runs failed" >&2; exit 1; }
