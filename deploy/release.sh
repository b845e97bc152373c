#!/bin/sh
# Makes all files of a release in target/release-files, for a tag such as v0.1.0: the images as OCI archives with their
# CycloneDX lists, the command line program, its archives (with manual pages and completions) and the manifest for krew, the chart, the
# manifests of each overlay, checksums, and notes from CHANGELOG.md. PROGRAMS is a folder with the command line programs for other systems, which cannot be
# compiled here: nodewise-VERSION-darwin-arm64 and so on.
set -eu
cd "$(dirname "$0")/.."
tag=${1:?the tag, such as v0.1.0}
if ! expr "$tag" : 'v[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*$' >/dev/null; then
	echo "release: a tag looks like v0.1.0" >&2
	exit 1
fi
version=$("${CARGO:-cargo}" pkgid --locked -p nodewise-server)
version=${version##*[#@]}
files=target/release-files

if [ "$tag" != "v$version" ]; then
	echo "release: the tag is $tag and Cargo.toml says $version" >&2
	exit 1
fi
rm -rf $files
mkdir -p $files
awk -v version="## [$version]" '/^## |^\[/ { on = 0 } on; index($0, version) == 1 { on = 1 }' CHANGELOG.md >$files/NOTES.md
if ! grep -q . $files/NOTES.md; then
	echo "release: CHANGELOG.md has no section [$version]" >&2
	exit 1
fi

make images
for image in nodewise-server nodewise-executor nodewise; do
	tar --create --file "$files/$image-$version.oci.tar" --directory target/images/$image .
	cp target/images/$image.cdx.json "$files/$image-$version.cdx.json"
done
for machine in amd64 arm64; do
	cp target/images/bin/$machine/nodewise "$files/nodewise-$version-linux-$machine"
done
if [ -n "${PROGRAMS:-}" ]; then
	cp "$PROGRAMS/nodewise-$version"-* $files
fi

# Manual pages and completions are the same for all systems.
case $(uname -m) in
x86_64) machine=amd64 ;;
aarch64 | arm64) machine=arm64 ;;
*) echo "release: no program for $(uname -m) was built, so none can print its manual pages" >&2 && exit 1 ;;
esac
program=target/images/bin/$machine/nodewise
extra=target/release-extra
rm -rf $extra
mkdir -p $extra/completions
"$program" man $extra/man1
"$program" completion bash >$extra/completions/nodewise.bash
"$program" completion elvish >$extra/completions/nodewise.elv
"$program" completion fish >$extra/completions/nodewise.fish
"$program" completion powershell >$extra/completions/nodewise.ps1
"$program" completion zsh >$extra/completions/_nodewise
deploy/archives.sh $files "$version" $extra

helm=$("${CARGO:-cargo}" run --locked --quiet -p nodewise-testbed -- tool helm)
kubectl=$("${CARGO:-cargo}" run --locked --quiet -p nodewise-testbed -- tool kubectl)
"$helm" package deploy/helm/nodewise --destination $files
for overlay in deploy/kustomize/overlays/*; do
	"$kubectl" kustomize "$overlay" >"$files/nodewise-$version-${overlay##*/}.yaml"
done
(cd $files && sha256sum -- *"$version"* krew.yaml >SHA256SUMS)
