#!/bin/sh
# Makes sure that a command is on PATH, or one of several that do the same, which only some tests
# need: optional.sh <Debian package> <command>... Installs the package where there is apt-get.
# Without it these tests are skipped, unless REQUIRE_<COMMAND>=1.
set -eu

package=$1
shift
for command; do
	if command -v "$command" >/dev/null 2>&1; then
		exit 0
	fi
done
if ! command -v apt-get >/dev/null 2>&1; then
	echo "optional.sh: no $1 here, and no apt-get to install it (Debian has it in the package $package)" >&2
	exit 0
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
echo "optional.sh: installing $package with apt-get" >&2
# An index that cannot be renewed may still be good enough.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 update >/dev/null </dev/null ||
	echo "optional.sh: apt-get update failed, going on with the index as it is" >&2
# RUNLEVEL=1 keeps the package from starting a service of its own. Nothing is lost if the machine stops
# meanwhile, so files do not have to be on disk at once.
$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -o DPkg::Options::=--force-unsafe-io \
	install -y --no-install-recommends "$package" >/dev/null </dev/null ||
	echo "optional.sh: apt-get could not install $package" >&2
# Under systemd the package does not ask for the run level.
if [ -d /run/systemd/system ] && systemctl cat "$package.service" >/dev/null 2>&1; then
	$as_root systemctl disable --now "$package.service" || true
fi
