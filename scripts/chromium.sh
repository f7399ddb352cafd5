#!/bin/sh
# Sees to it that chromium is on PATH: the tests of the page run it. Installs it where there
# is apt-get; without it these tests are skipped, unless REQUIRE_CHROMIUM=1.
set -eu

if ! command -v chromium >/dev/null 2>&1 && ! command -v chromium-browser >/dev/null 2>&1 && ! command -v google-chrome >/dev/null 2>&1; then
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "chromium.sh: no chromium here, and no apt-get to install it (Debian has it in the package chromium)" >&2
		exit 0
	fi
	as_root=
	[ "$(id -u)" -eq 0 ] || as_root=sudo
	echo "chromium.sh: installing chromium with apt-get" >&2
	# An index that cannot be renewed may still be good enough.
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 update >/dev/null </dev/null ||
		echo "chromium.sh: apt-get update failed, going on with the index as it is" >&2
	# Nothing is lost if the machine stops meanwhile, so files need not be on disk at once.
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -o DPkg::Options::=--force-unsafe-io \
		install -y --no-install-recommends chromium >/dev/null </dev/null ||
		echo "chromium.sh: apt-get could not install chromium" >&2
fi
