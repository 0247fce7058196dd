#!/usr/bin/env bash
# Runs the official OpenAI Python SDK, unmodified, against a server on two ranks over the shipped
# models. Needs a built program and a package index for pip. Ends with "clients: all passed".
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/tokenrouter
work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || kill -TERM "$(cat "$work/pid")" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" || true
  rm -rf "$work"
}
trap stop EXIT

# CLIENTS_VENV keeps the packages from one run to the next.
venv=${CLIENTS_VENV:-$work/venv}
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import openai" 2>/dev/null || "$venv/bin/pip" install --quiet openai

as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(--allow-run-as-root)
mpirun -np 2 --oversubscribe "${as_root[@]}" sh -c \
  "[ \"\$OMPI_COMM_WORLD_RANK\" != 0 ] || echo \$\$ > $work/pid; exec $program serve \
   --config configs/r2r/abacus-xs_abacus-m.yaml --port 0 --port-file $work/port" &
server=$!
for _ in $(seq 600); do
  [ ! -s "$work/port" ] || break
  sleep 0.1
done
url=http://127.0.0.1:$(cat "$work/port")
$program wait --url "$url" --timeout-s 60
timeout 200 "$venv/bin/python" ci/clients/openai_sdk.py "$url"

kill -TERM "$(cat "$work/pid")"
wait "$server"
server=
echo "clients: all passed"
