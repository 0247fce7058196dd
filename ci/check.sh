#!/usr/bin/env bash
# Everything CI checks: packages, build, style, the protocol's model, Slurm, the page, all tests. Ends with
# "N passed, N failed" and, where something could not run, ", N skipped".
# BUILD_JOBS limits the parallel compilations (default: all cores).
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${BUILD_JOBS:-$(nproc)}

fail() {
  echo "check: $1"
  echo "0 passed, 1 failed"
  exit 1
}

./ci/setup.sh --tests || fail "packages are missing"
cmake --preset release -DTOKENROUTER_TESTS=ON >/dev/null || fail "configuring failed; run: cmake --preset release"
cmake --build --preset release --parallel "$jobs" || fail "the build failed"

failed_style=0
python3 ci/tidy.py || failed_style=1
failed_model=0
./ci/model/run.sh || failed_model=1
failed_run=0 skipped_run=0
for run in slurm page; do
  "./ci/$run/run.sh"
  case $? in
    0) ;;
    77) skipped_run=$((skipped_run + 1)) ;;
    *) failed_run=$((failed_run + 1)) ;;
  esac
done

log=build/release/ctest.log
ctest --test-dir build/release --output-on-failure --no-tests=error --timeout 600 2>&1 | tee "$log"
summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1)
[ -n "$summary" ] || fail "ctest found no tests"
failed=$(echo "$summary" | sed -E 's/.*passed, ([0-9]+) tests? failed.*/\1/')
total=$(echo "$summary" | sed -E 's/.*out of ([0-9]+).*/\1/')
skipped=$(grep -cE '\*\*\*Skipped' "$log" || true)
passed=$((total - failed - skipped + 4 - failed_style - failed_model - failed_run - skipped_run))
failed=$((failed + failed_style + failed_model + failed_run))
skipped=$((skipped + skipped_run))
echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
[ "$failed" -eq 0 ]
