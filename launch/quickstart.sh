#!/usr/bin/env bash
# From a bare Debian 12 machine to a routed answer: installs the packages, builds the program, and
# lets abacus-xs and abacus-m answer together on two ranks. Arguments: another question.
set -euo pipefail
cd "$(dirname "$0")/.."
question=${*:-"Maya has 347 stickers. She buys 285 more, then gives 128 to Omar. How many stickers does she have now?"}

./ci/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" --target tokenrouter

config=configs/r2r/abacus-xs_abacus-m.yaml
program=build/release/tokenrouter
mpi=(mpirun -np 2 --oversubscribe --bind-to none)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)

echo
"$program" check --config "$config" --ranks 2
echo
echo "Two ranks, R2R routing. Bright: written by abacus-m, where abacus-xs was not sure."
echo "> $question"
echo
"${mpi[@]}" "$program" generate --config "$config" --prompt "$question" --color
