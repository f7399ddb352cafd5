#!/bin/sh
# Sees to it that promtool is on PATH: a test has it check the metrics. Installs it
# where there is apt-get; without it that test is skipped, unless REQUIRE_PROMTOOL=1.
set -eu

if ! command -v promtool >/dev/null 2>&1; then
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "promtool.sh: no promtool here, and no apt-get to install it (Debian has it in the package prometheus)" >&2
		exit 0
	fi
	as_root=
	[ "$(id -u)" -eq 0 ] || as_root=sudo
	echo "promtool.sh: installing promtool with apt-get" >&2
	# An index that cannot be renewed may still be good enough.
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 update >/dev/null </dev/null ||
		echo "promtool.sh: apt-get update failed, going on with the index as it is" >&2
	# RUNLEVEL=1 keeps the package from starting a service of its own.
	$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
		install -y --no-install-recommends prometheus >/dev/null </dev/null ||
		echo "promtool.sh: apt-get could not install prometheus" >&2
	# Under systemd the package does not ask for the run level.
	if [ -d /run/systemd/system ]; then
		$as_root systemctl disable --now prometheus.service || true
	fi
fi
