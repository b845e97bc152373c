#!/bin/sh
# Prints the path of Chromium. If there is none and this is root on Debian, installs it.
set -eu
for name in chromium chromium-browser google-chrome; do
	if command -v "$name"; then
		exit 0
	fi
done
if [ "$(id -u)" -ne 0 ]; then
	echo 'chromium.sh: there is no Chromium; install the package chromium' >&2
	exit 1
fi
{ apt-get update --quiet=2 && apt-get install --quiet=2 --yes --no-install-recommends chromium fonts-dejavu-core; } >&2
command -v chromium
