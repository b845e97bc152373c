#!/bin/sh
# Makes the archives of the command line program, and the manifest for krew (kubectl's plugin manager) with their checksums.
#
#   deploy/archives.sh FOLDER VERSION [EXTRA]
#
# FOLDER has the programs as nodewise-VERSION-OS-MACHINE, with .exe for Windows. The archives and krew.yaml are written there.
# In an archive the program is called kubectl-nodewise, so that it also works as a plugin without krew. All files of EXTRA are added
# to each archive: the manual pages (man1) and the completions of shells (completions).
set -eu
folder=${1:?the folder with the programs} version=${2:?the version, such as 0.1.0} extra=${3:-}
[ -z "$extra" ] || extra=$(cd "$extra" && pwd)
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
    Shows and steers rollouts of Deployments, ReplicaSets and DaemonSets, on any cluster and with the built-in controllers in charge.
    Nothing needs to be installed in the cluster.

    status     a row for each workload: how far its rollout is, and what holds it up
    rollout    one rollout, live, with its causes; history, diff, undo, pause, resume, restart and retry
    plan       what the controllers would do next, or with a new manifest all steps to the end
    simulate   a change is played on a simulated cluster before it is made
    explain    why a workload, pod or node is in its present state
    check      what keeps Nodewise from working, before and after installing it
    dashboard  all rollouts on a page in the browser
    overhead   which DaemonSets would run on a new node, and what they request
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
		if [ -n "$extra" ]; then
			cp -R "$extra/." "$scratch/files/"
		fi
		# Equal programs make equal archives.
		(cd "$scratch/files" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$scratch/names"
		case $os in
		windows) python3 - "$archive" "$scratch/files" "$scratch/names" "$program" <<'ZIP' ;;
import pathlib, sys, zipfile
archive, folder, names, program = sys.argv[1:]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
    for name in pathlib.Path(names).read_text().split():
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if name == program else 0o100644) << 16
        file.writestr(entry, pathlib.Path(folder, name).read_bytes())
ZIP
		*)
			tar --create --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --mtime="@${SOURCE_DATE_EPOCH:-0}" \
				--directory "$scratch/files" --files-from "$scratch/names" | gzip -n >"$archive"
			;;
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
