#!/usr/bin/env bash
# Uses the page in headless Chromium against a server of two ranks over the shipped models, which asks for an API
# key. Screenshots stay in OUTPUT. Says "skipped: why" and ends with 77 where there is no Chromium (Debian's package
# chromium, 120 MB, is not installed for this alone). Usage: ci/page/run.sh [PROGRAM [OUTPUT]]
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${1:-build/release/tokenrouter}")
output=${2:-build/page}

[ -x "$program" ] || { echo "page: $program is not built" >&2; exit 2; }
chromium=
for name in chromium chromium-headless-shell chrome google-chrome; do
  [ -n "$chromium" ] || chromium=$(command -v "$name" || true)
done
[ -n "$chromium" ] || { echo "page: skipped: there is no Chromium (apt-get install chromium)"; exit 77; }

work=$(mktemp -d)
server=
stop() {
  [ ! -s "$work/pid" ] || kill -TERM "$(cat "$work/pid")" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" || true
  rm -rf "$work"
}
trap stop EXIT

echo "a-key-of-this-test" > "$work/keys"
as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(--allow-run-as-root)
mpirun -np 2 --oversubscribe --bind-to none "${as_root[@]}" sh -c \
  "[ \"\$OMPI_COMM_WORLD_RANK\" != 0 ] || echo \$\$ > $work/pid; exec $program serve \
   --config configs/r2r/abacus-xs_abacus-m.yaml --set serve.api_key_file=$work/keys \
   --port 0 --port-file $work/port" 2> "$work/log" &
server=$!
for _ in $(seq 600); do
  [ ! -s "$work/port" ] || break
  sleep 0.1
done
[ -s "$work/port" ] || { echo "page: the server did not start" >&2; cat "$work/log" >&2; exit 1; }
url=http://127.0.0.1:$(cat "$work/port")
"$program" wait --url "$url" --timeout-s 60
timeout 300 python3 ci/page/browser.py "$chromium" "$url" "$(cat "$work/keys")" "$output"

kill -TERM "$(cat "$work/pid")"
wait "$server"
server=
rm -f "$work/pid"
echo "page: all passed; screenshots in $output"
