#!/usr/bin/env bash
# Searches the handoff protocol's states (handoff.pml) in full: the rules must hold, and must be
# broken where the model is told to break them. Takes under a minute on two cores, and 1 GB.
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/handoff.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# search NAME EXPECTED COMPILER SEARCHER DEFINES…: EXPECTED is what the search must report.
search() (
  name=$1 expected=$2 compiler=$3 searcher=$4
  shift 4
  mkdir "$work/$name"
  cd "$work/$name"
  spin "$@" -a "$model" >/dev/null
  # shellcheck disable=SC2086
  gcc -w -DCOLLAPSE $compiler -o pan pan.c
  # shellcheck disable=SC2086
  timeout 240 ./pan -n -m1000000 -w22 $searcher >report 2>&1 || true
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' report | head -n 1)
  found=$(sed -nE 's/^pan:[0-9]+: (invalid end state|assertion violated|acceptance cycle).*/\1/p' \
    report | head -n 1)
  if [ -z "$found" ] && grep -q 'errors: 0' report && ! grep -q 'not completed' report; then
    found=nothing
  fi
  echo "model: $name ($*): ${states:-no} states, found ${found:-no answer}"
  if [ "$found" != "$expected" ]; then
    echo "model: expected to find $expected"
    cat report
    return 1
  fi
)

large="-O2 -DSAFETY -DNOCLAIM" # compiling it well takes longer than searching a small one
small="-O0 -DSAFETY -DNOCLAIM"
search two-models nothing "$large" "" -DMODELS=2 -DREQUESTS=3 &
two_models=$!
search three-models nothing "$large" "" -DMODELS=3 -DLENGTH=1 -DCANCELS=0 &
three_models=$!
failed=0
wait $two_models || failed=1
wait $three_models || failed=1
search eager-entry nothing "$small" "" -DEAGER_ENTRY -DCANCELS=0 || failed=1
search repeated-handoff nothing "$small" "" -DREQUESTS=2 -DREPEATS=1 || failed=1
search every-request-ends nothing "-O0" "-a" -DREQUESTS=2 || failed=1
search thresholds-above-the-rule "invalid end state" "$small" "" -DBROKEN_RULE || failed=1
search thresholds-that-do-not-fall "invalid end state" "$small" "" -DBROKEN_COUNT || failed=1
[ $failed -eq 0 ] && echo "model: the protocol holds"
exit $failed
