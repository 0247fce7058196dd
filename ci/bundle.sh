#!/usr/bin/env bash
# Makes one tar of what a machine without a network needs to build and run TokenRouter: the Debian
# packages that ci/setup.sh lists with all they depend on, except what every installation has
# (priority `required` and its dependencies); the committed sources; an install script.
#
#   ci/bundle.sh [--without PACKAGE]... FILE.tar
#
# --without leaves a package of ci/setup.sh out, with what only it needs, because the target has it:
# a libtorch of its own, a compiler. Needs apt with up-to-date lists, not root. The target runs the
# release and architecture that this runs on. There, without root:
#
#   tar -xf FILE.tar && tokenrouter-bundle/install.sh PREFIX
#   . PREFIX/env.sh && cd PREFIX/src && cmake --preset release && cmake --build --preset release
#
# Packages are unpacked with `dpkg -x`; their scripts don't run, so install.sh makes the links that
# update-alternatives would, and points absolute paths in CMake and pkg-config files at PREFIX.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "bundle: $1" >&2
  exit 2
}

without=()
output=
while [ $# -gt 0 ]; do
  case $1 in
    --without)
      [ $# -ge 2 ] || fail "--without needs the name of a package"
      without+=("$2")
      shift 2
      ;;
    -*) fail "unknown option $1; usage: ci/bundle.sh [--without PACKAGE]... FILE.tar" ;;
    *)
      [ -z "$output" ] || fail "give one output file"
      output=$(realpath -m "$1")
      shift
      ;;
  esac
done
[ -n "$output" ] || fail "usage: ci/bundle.sh [--without PACKAGE]... FILE.tar"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/tokenrouter-bundle
mkdir -p "$bundle/debs"
: >"$work/status"

# Names of the packages, one a line, that a system without any would install for those given.
closure() {
  apt-get -o Dir::State::status="$work/status" -o Debug::NoLocking=1 \
    -s --no-install-recommends install "$@" | awk '$1 == "Inst" { print $2 }' | sort -u
}

mapfile -t wanted < <(./ci/setup.sh --list)
for package in "${without[@]}"; do
  printf '%s\n' "${wanted[@]}" | grep -qxF -- "$package" ||
    fail "--without $package: ci/setup.sh has no such package"
  mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | grep -vxF -- "$package")
done
mapfile -t required < <(apt-cache dumpavail |
  awk '/^Package:/ { name = $2 } /^Priority: required/ { print name }' | sort -u)
[ "${#required[@]}" -gt 0 ] || fail "apt has no package lists; run: apt-get update"
closure "${required[@]}" >"$work/base"
closure "${wanted[@]}" >"$work/all"
comm -23 "$work/all" "$work/base" >"$work/needed"
for package in "${without[@]}"; do
  ! grep -qxF -- "$package" "$work/needed" || fail "--without $package: another package needs it"
done

echo "bundle: downloading $(wc -l <"$work/needed") packages"
# Nothing counts as installed here either: the candidates are those of the list above.
(cd "$bundle/debs" && xargs apt-get -o Dir::State::status="$work/status" \
  -o APT::Sandbox::User=root -q download <"$work/needed" >"$work/log" 2>&1) ||
  { tail -n 5 "$work/log" >&2; fail "a download failed"; }
found=$(find "$bundle/debs" -name '*.deb' | wc -l)
[ "$found" -eq "$(wc -l <"$work/needed")" ] || fail "$found packages came"

git archive --format=tar --prefix=src/ HEAD >"$bundle/src.tar"
install -m 755 ci/bundle_install.sh "$bundle/install.sh"
tar -C "$work" -cf "$output" tokenrouter-bundle
echo "bundle: $output, $found packages, $(du -m "$output" | cut -f1) MiB"
