#!/bin/sh
# Makes the archives of the command line program, and the manifest for krew (kubectl's plugin manager) with their checksums.
#
#   deploy/archives.sh FOLDER VERSION
#
# FOLDER has the programs as nodewise-VERSION-OS-MACHINE, with .exe for Windows. The archives and krew.yaml are written there.
# In an archive the program is called kubectl-nodewise, so that it also works as a plugin without krew.
set -eu
folder=${1:?the folder with the programs} version=${2:?the version, such as 0.1.0}
license=$(cd "$(dirname "$0")/.." && pwd)/LICENSE
cd "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
url=https://github.com/nodewise/nodewise/releases/download/v$version

cat >"$scratch/krew.yaml" <<MANIFEST
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: nodewise
spec:
  version: v$version
  homepage: https://github.com/nodewise/nodewise
  shortDescription: Show what workload controllers do next, and why
  description: |
    Shows what the controllers of DaemonSets, ReplicaSets and Deployments would do next (plan) and why a workload is in its present
    state (explain), on any cluster. Checks an installation of Nodewise (check).
  platforms:
MANIFEST

count=0
for os in linux darwin windows; do
	for machine in amd64 arm64; do
		name=nodewise-$version-$os-$machine
		case $os in windows) suffix=.exe archive=$name.zip ;; *) suffix='' archive=$name.tar.gz ;; esac
		[ -f "$name$suffix" ] || continue
		program=kubectl-nodewise$suffix
		rm -rf "$scratch/files" "$archive"
		mkdir "$scratch/files"
		install -m 0755 "$name$suffix" "$scratch/files/$program"
		install -m 0644 "$license" "$scratch/files/LICENSE"
		# Equal programs make equal archives.
		touch -d "@${SOURCE_DATE_EPOCH:-0}" "$scratch/files/$program" "$scratch/files/LICENSE"
		case $os in
		windows) python3 - "$archive" "$scratch/files" "$program" LICENSE <<'ZIP' ;;
import pathlib, sys, zipfile
archive, folder, *names = sys.argv[1:]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
    for name in names:
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o100755 << 16
        file.writestr(entry, pathlib.Path(folder, name).read_bytes())
ZIP
		*) tar --create --owner=0 --group=0 --numeric-owner --directory "$scratch/files" "$program" LICENSE | gzip -n >"$archive" ;;
		esac
		sum=$(sha256sum "$archive")
		cat >>"$scratch/krew.yaml" <<PLATFORM
    - selector: { matchLabels: { os: $os, arch: $machine } }
      uri: $url/$archive
      sha256: ${sum%% *}
      bin: $program
PLATFORM
		count=$((count + 1))
	done
done
if [ $count = 0 ]; then
	echo "archives: $folder has no program nodewise-$version-OS-MACHINE" >&2
	exit 1
fi
cp "$scratch/krew.yaml" krew.yaml
