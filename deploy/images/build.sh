#!/bin/sh
# Builds the images of all programs without a container engine, and writes them as OCI layouts.
# OUT is the folder, ARCHITECTURES are "amd64 arm64" or one of them, PROFILE is the Cargo profile, and PYTHON is the interpreter whose
# pip downloads the cross compiler.
set -eu
cd "$(dirname "$0")/../.."
here=deploy/images
out=${OUT:-target/images}
architectures=${ARCHITECTURES:-amd64 arm64}
profile=${PROFILE:-release}
# Where Cargo puts what it compiles with this profile.
case $profile in dev) folder=debug ;; *) folder=$profile ;; esac
cargo=${CARGO:-cargo}

zig=$PWD/target/tools/zig-$(cksum <$here/requirements.txt | cut -d ' ' -f 1)
if [ ! -d "$zig" ]; then
	mkdir -p target/tools
	new=$(mktemp -d target/tools/zig-new-XXXXXX)
	"${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
		--require-hashes --only-binary :all: --target "$new" -r $here/requirements.txt
	# Another process may have created the folder meanwhile.
	mv -T "$new" "$zig" || rm -rf "$new"
fi
buildah=$(testbed/run.sh tool buildah)
bwrap=$(testbed/run.sh tool bwrap)

target() {
	case $1 in
	amd64) echo x86_64-unknown-linux-musl ;;
	arm64) echo aarch64-unknown-linux-musl ;;
	*) echo "ARCHITECTURES: $1 is neither amd64 nor arm64" >&2 && exit 1 ;;
	esac
}
targets=
platforms=
for architecture in $architectures; do
	target=$(target "$architecture")
	rustup --quiet target add "$target"
	targets="$targets --target $target"
	platforms="$platforms,linux/$architecture"
done

# Static programs, without paths of this machine.
# shellcheck disable=SC2086 # The targets are several words.
PATH="$zig/bin:$PATH" CARGO_ZIGBUILD_ZIG_PATH="$zig/ziglang/zig" \
	RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/cargo --remap-path-prefix=$PWD=/nodewise" \
	"$cargo" zigbuild --locked --profile "$profile" $targets \
	-p nodewise-server -p nodewise-executor -p nodewise --bins
for architecture in $architectures; do
	mkdir -p "$out/bin/$architecture"
	for program in nodewise-server nodewise-executor nodewise; do
		install "${CARGO_TARGET_DIR:-target}/$(target "$architecture")/$folder/$program" "$out/bin/$architecture"
	done
done

version=$("$cargo" pkgid --locked -p nodewise-server)
version=${version##*[#@]}
# Equal sources must make equal images.
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct || echo 0)}
revision=$(git rev-parse HEAD || echo unknown)
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
# The sandbox maps the current user to root, because buildah expects to be root and to write to /run.
set -- "$bwrap" --unshare-user --uid 0 --gid 0 --cap-add ALL --dev-bind / / --tmpfs /run \
	"$buildah" --root "$scratch/storage" --runroot "$scratch/run" --storage-driver vfs
for image in nodewise-server nodewise-executor nodewise; do
	# One file, so one layer.
	"$@" build --quiet --isolation chroot --signature-policy $here/policy.json --file $here/Containerfile --target $image \
		--manifest localhost/$image --platform "${platforms#,}" --squash --identity-label=false --timestamp "$time" \
		--build-arg VERSION="$version" --build-arg REVISION="$revision" "$out/bin"
	rm -rf "${out:?}/$image"
	"$@" manifest push --quiet --all --signature-policy $here/policy.json localhost/$image "oci:$out/$image:$version"
done
