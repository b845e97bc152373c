#!/bin/sh
# Builds the images of all programs for both architectures, without a container engine, and leaves them as OCI layouts.
# OUT chooses the folder, PROFILE one of Cargo's profiles, PYTHON the interpreter whose pip fetches the cross compiler.
set -eu
cd "$(dirname "$0")/../.."
here=deploy/images
out=${OUT:-target/images}
profile=${PROFILE:-release}
cargo=${CARGO:-cargo}

zig=$PWD/target/tools/zig-$(cksum <$here/requirements.txt | cut -d ' ' -f 1)
if [ ! -d "$zig" ]; then
	mkdir -p target/tools
	new=$(mktemp -d target/tools/zig-new-XXXXXX)
	"${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
		--require-hashes --only-binary :all: --target "$new" -r $here/requirements.txt
	# Another process may have been faster.
	mv -T "$new" "$zig" || rm -rf "$new"
fi
buildah=$("$cargo" run --locked --quiet -p nodewise-testbed -- tool buildah)
bwrap=$("$cargo" run --locked --quiet -p nodewise-testbed -- tool bwrap)

# Static programs, in which no path of this machine is left.
rustup --quiet target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl
PATH="$zig/bin:$PATH" CARGO_ZIGBUILD_ZIG_PATH="$zig/ziglang/zig" \
	RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/cargo --remap-path-prefix=$PWD=/nodewise" \
	"$cargo" zigbuild --locked --profile "$profile" --target x86_64-unknown-linux-musl --target aarch64-unknown-linux-musl \
	-p nodewise-server -p nodewise-executor -p nodewise --bins
for machine in amd64:x86_64 arm64:aarch64; do
	mkdir -p "$out/bin/${machine%:*}"
	for program in nodewise-server nodewise-executor nodewise; do
		install "${CARGO_TARGET_DIR:-target}/${machine#*:}-unknown-linux-musl/$profile/$program" "$out/bin/${machine%:*}"
	done
done

version=$("$cargo" pkgid --locked -p nodewise-server)
version=${version##*[#@]}
# Equal sources make equal images.
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct || echo 0)}
revision=$(git rev-parse HEAD || echo unknown)
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
# Whoever runs this is root in there, and there only: buildah would like to be, and to write to /run.
set -- "$bwrap" --unshare-user --uid 0 --gid 0 --cap-add ALL --dev-bind / / --tmpfs /run \
	"$buildah" --root "$scratch/storage" --runroot "$scratch/run" --storage-driver vfs
for image in nodewise-server nodewise-executor nodewise; do
	# One layer, since there is one file.
	"$@" build --quiet --isolation chroot --signature-policy $here/policy.json --file $here/Containerfile --target $image \
		--manifest localhost/$image --platform linux/amd64,linux/arm64 --squash --identity-label=false --timestamp "$time" \
		--build-arg VERSION="$version" --build-arg REVISION="$revision" "$out/bin"
	rm -rf "${out:?}/$image"
	"$@" manifest push --quiet --all --signature-policy $here/policy.json localhost/$image "oci:$out/$image:$version"
done
