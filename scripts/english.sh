#!/usr/bin/env bash
# Checks the English and the spelling of pages, comments and scripts, and the English of errors and warnings of configs, with
# Vale, whose path is the argument. .vale.ini says which rules there are. tools/vale/bad.md has a sentence for each rule, in
# which the rules must find something.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

vale=$1
lines=$("$vale" --output line tools/vale/bad.md | cut -d : -f 2 | sort -u) || true
missed=$(grep -n . tools/vale/bad.md | grep -vE "^($(tr '\n' '|' <<<"$lines")x):") || true
if [[ -n $missed ]]; then
	printf 'no rule of tools/vale finds anything in\n%s\n' "$missed" >&2
	exit 1
fi
git ls-files '*.md' '*.go' '*.lua' '*.js' '*.html' '*.sh' '*.yml' '*.yaml' | grep -vE '(^|/)testdata/|^tools/vale/|\.min\.' |
	xargs "$vale" --output line
sed -n 's/^=> \(.*\)/\1\n/p' testdata/configs.txt | "$vale" --output line --ext .txt
