#!/usr/bin/env bash
# Runs clients of OpenAI's API, unmodified, against a server on two ranks over the shipped models:
#
#   ci/clients.sh [CLIENT...]     openai (the default), lm-eval, guidellm
#
# Needs a built program and a package index for pip; each client gets a virtual environment of its own,
# kept from one run to the next if CLIENTS_VENV names a folder for them. No data set is downloaded.
# Ends with "clients: all passed".
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/tokenrouter
models=examples/models/abacus
work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || kill -TERM "$(cat "$work/pid")" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" || true
  rm -rf "$work"
}
trap stop EXIT
[ $# -gt 0 ] || set -- openai

# Puts a client's virtual environment into $venv: NAME PACKAGE...
use_venv() {
  venv=${CLIENTS_VENV:-$work/venv}/$1
  [ -e "$venv/ready" ] || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet uv # pip alone takes minutes to choose versions
    "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "${@:2}"
    touch "$venv/ready"
  }
}

run_openai() {
  use_venv openai openai
  timeout 200 "$venv/bin/python" ci/clients/openai_sdk.py "$url"
}

# Log-likelihoods of one model by /v1/completions, answers of the routed job by /v1/chat/completions.
run_lm_eval() {
  use_venv lm-eval 'lm_eval[api]' transformers
  export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 HF_HOME=$work/hf
  lm_eval() { timeout 600 "$venv/bin/lm_eval" --include_path ci/clients/lm_eval --output_path "$work/lm-eval" "$@"; }
  lm_eval --model local-completions --tasks abacus_likely --limit 40 --apply_chat_template \
    --model_args "model=abacus-m,base_url=$url/v1/completions,tokenizer=$models/abacus-m,num_concurrent=4,max_length=2048"
  lm_eval --model local-chat-completions --tasks abacus_answers --limit 40 --apply_chat_template \
    --model_args "model=tokenrouter,base_url=$url/v1/chat/completions,num_concurrent=8"
  "$venv/bin/python" ci/clients/lm_eval_results.py "$work/lm-eval"
}

# Eight streams at a time for a while, by a load generator.
run_guidellm() {
  use_venv guidellm guidellm
  HF_HUB_OFFLINE=1 timeout 300 "$venv/bin/guidellm" run --backend "kind=openai_http,target=$url,model=tokenrouter" \
    --profile kind=concurrent,streams=8 --constraint kind=max_duration,seconds=15 \
    --data kind=synthetic_text,prompt_tokens=64,output_tokens=64 \
    --tokenizer "kind=huggingface_auto,model=$models/abacus-m" \
    --output kind=console --output "kind=json,path=$work/guidellm.json" --disable-console-interactive
  "$venv/bin/python" ci/clients/guidellm_results.py "$work/guidellm.json"
}

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
for client in "$@"; do
  case $client in
  openai) run_openai ;;
  lm-eval) run_lm_eval ;;
  guidellm) run_guidellm ;;
  *) echo "clients: '$client' is not one of openai, lm-eval, guidellm" >&2 && exit 2 ;;
  esac
  echo "clients: $client passed"
done

kill -TERM "$(cat "$work/pid")"
wait "$server"
server=
echo "clients: all passed"
