#!/usr/bin/env bash
# Runs a command N times: start_stop.sh N COMMAND…. Fails if one run fails, takes more than 20 s or
# writes to stderr.
set -u
loops=$1
shift
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
for ((i = 1; i <= loops; ++i)); do
  timeout -k 2 20 "$@" 2>"$errors"
  code=$?
  if ((code != 0)) || [[ -s $errors ]]; then
    echo "run $i of $loops: exit code $code" >&2
    cat "$errors" >&2
    exit 1
  fi
done
