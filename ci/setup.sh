#!/usr/bin/env bash
# Installs every Debian 12 package that building and running needs; with --tests also what ci/check.sh
# needs beside, with --list prints their names instead. Needs root (or sudo).
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git ca-certificates python3
  libcaf-dev
  libopenmpi-dev openmpi-bin
  libucx-dev
  libtorch-dev
  libhdf5-openmpi-dev
  libyaml-cpp-dev
  libboost-dev libboost-test-dev
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libexpected-dev librandom123-dev
  libhwloc-dev libpcre2-dev libutf8proc-dev libeigen3-dev
  libopenblas0-pthread                    # the BLAS that tests/bench/cpu_step compares with
)
test_packages=(
  clang-format                            # ci/tidy.py checks the format
  python3-zmq                             # the other side of tests/bench/handoff
  hdf5-tools
  munge slurmctld slurmd slurm-client     # ci/slurm: a job under a real Slurm of one node
  spin gcc libc6-dev                      # ci/model: the protocol, model-checked
)
[ "${1:-}" != --tests ] || packages+=("${test_packages[@]}")

if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run this as root, these are missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: done"
