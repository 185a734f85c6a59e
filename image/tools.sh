# shellcheck shell=bash disable=SC2034
# The tools that make and check the image, each at one version; sourced, never run. What is missing is installed by
# name: Debian packages, and the rest into $tools, once per machine.
export LC_ALL=C
umask 022
rust=1.95.0
zig=0.17.1
zigbuild=0.24.1
cyclonedx=0.5.9
crane=v0.22.1
declare -A targets=([amd64]=x86_64-unknown-linux-musl [arm64]=aarch64-unknown-linux-musl)
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tidegate-tools
source tests/testbed/env.sh

# linked TARGET : NAME-VERSION of every crate that is linked into the program. Macros and build scripts run where
# it is built.
linked() {
	cargo tree --locked --package tidegate --target "$1" --edges normal,no-proc-macro --prefix none --format '{p}' |
		awk '$1 !~ /^tidegate(-|$)/ { print $1 "-" substr($2, 2) }' | sort -u
}

# crate NAME VERSION : installs a program of crates.io.
crate() {
	cargo install --list --root "$tools" | grep -qx "$1 v$2:" ||
		nice cargo install "$1" --locked --version "$2" --root "$tools"
}

# compilers TARGET... : Rust with these targets, and zig, which is the C compiler and brings musl.
compilers() {
	command -v rustup >/dev/null || { echo "the image needs Rust: install it from https://rustup.rs" >&2; exit 1; }
	need git git cc gcc jq jq python3 python3 pip3 python3-pip
	rustup toolchain list | grep -q "^$rust-" || rustup toolchain install "$rust" --profile minimal
	local installed
	installed=$(rustup target list --installed --toolchain "$rust")
	for target; do
		grep -qx "$target" <<<"$installed" || rustup target add "$target" --toolchain "$rust"
	done
	export RUSTUP_TOOLCHAIN=$rust
	local ziglang=$tools/ziglang-$zig
	[[ $("$ziglang/ziglang/zig" version 2>/dev/null) == "$zig" ]] || {
		rm -rf "$ziglang"
		pip3 install --quiet --disable-pip-version-check --no-deps --target "$ziglang" "ziglang==$zig"
	}
	export CARGO_ZIGBUILD_ZIG_PATH=$ziglang/ziglang/zig
	crate cargo-zigbuild "$zigbuild"
	crate cargo-cyclonedx "$cyclonedx"
	PATH=$tools/bin:$PATH
}

# inspectors : what looks at a finished image.
inspectors() {
	command -v go >/dev/null ||
		{ echo "the check needs Go 1.21 or newer: install it from https://go.dev/dl/" >&2; exit 1; }
	need skopeo skopeo jq jq bwrap bubblewrap file file openssl openssl
	[[ $("$tools/bin/crane" version 2>/dev/null) == "$crane" ]] ||
		GOBIN=$tools/bin go install "github.com/google/go-containerregistry/cmd/crane@$crane"
	PATH=$tools/bin:$PATH
}
