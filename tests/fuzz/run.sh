#!/usr/bin/env bash
# Builds the fuzz targets for libFuzzer and runs each for that many minutes; ends with 1 at the first finding.
# Usage: tests/fuzz/run.sh MINUTES [TARGET ...]    CLANG (default clang-16) names the compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { sed -n 3p "$0" >&2; exit 2; }
minutes=$1
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi
clang=${CLANG:-clang-16}
command -v "$clang" >/dev/null || { echo "fuzz: there is no $clang (apt-get install clang-16 libclang-rt-16-dev)" >&2; exit 2; }

cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -g1" \
  -DCMAKE_C_COMPILER="$clang" -DCMAKE_CXX_COMPILER="${clang/clang/clang++}" -DTOKENROUTER_FUZZ=ON \
  -DTOKENROUTER_CUDA=OFF -DTOKENROUTER_SANITIZE=address,undefined >/dev/null
cmake --build build/fuzz --parallel "${BUILD_JOBS:-$(nproc)}" --target "${targets[@]}"

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for target in "${targets[@]}"; do
  found=build/fuzz/found/$target
  mkdir -p "$found" "build/fuzz/corpus/$target"
  echo "fuzz: $target for $minutes min"
  "build/fuzz/$target" -max_total_time=$((minutes * 60)) -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
    -artifact_prefix="$found/" -print_final_stats=1 -verbosity=0 \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/${target#fuzz_}" 2>&1 | tail -n 40
done
echo "fuzz: nothing found"
