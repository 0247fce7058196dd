#!/usr/bin/env bash
# Runs the shipped two-model config under a real Slurm of one node, made here of Debian's packages (munge, slurmctld,
# slurmd) in a scratch folder: compares the answer with that of one process, and kills a task of a job that may go on.
# Says "skipped: why" and ends with 77 where Slurm can't start (no root, packages missing, no way to run its daemons).
# Usage: ci/slurm/run.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${1:-build/release/tokenrouter}")
config=configs/r2r/abacus-xs_abacus-m.yaml

skip() { echo "slurm: skipped: $*"; exit 77; }

[ -x "$program" ] || { echo "slurm: $program is not built" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || skip "its daemons need root"
for tool in munged mungekey slurmctld slurmd srun sbatch sinfo; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (apt-get install munge slurmctld slurmd slurm-client)"
done
export SLURM_CONF=/dev/null
scratch=$(mktemp -d)
daemons=()
clean_up() {
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap clean_up EXIT
chmod 755 "$scratch"
mkdir -p "$scratch"/{munge,state,spool}
chmod 700 "$scratch/munge"

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() { # seconds, what, command: until it succeeds
  local left=$(($1 * 5)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || { tail -n 5 "$scratch"/*.log 2>/dev/null | sed 's/^/  /'; skip "$what"; }
    sleep 0.2
  done
}

mungekey --create --keyfile "$scratch/munge/key"
munged --foreground --force --key-file "$scratch/munge/key" --socket "$scratch/munge/socket" \
  --pid-file "$scratch/munge/pid" --seed-file "$scratch/munge/seed" --log-file "$scratch/munge/log" >/dev/null 2>&1 &
daemons+=($!)

host=$(hostname -s)
cores=$(nproc)
cat > "$scratch/slurm.conf" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CryptoType=crypto/munge
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=10 State=UP OverSubscribe=YES
END
export SLURM_CONF=$scratch/slurm.conf
await 10 "munged does not start" munge -n -S "$scratch/munge/socket"
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no PMIx plugin"
slurmctld -D -f "$SLURM_CONF" >"$scratch/slurmctld.log" 2>&1 &
daemons+=($!)
await 20 "slurmctld does not start" sinfo
slurmd -D -f "$SLURM_CONF" >"$scratch/slurmd.log" 2>&1 &
daemons+=($!)
is_idle() { sinfo -h -o %t | grep -q idle; }
await 30 "the node does not become idle" is_idle

question="What is 4822 + 22 - 2763?"
alone=$("$program" generate --config "$config" --prompt "$question" --set compute_dtype=float32 2>/dev/null)
as_job=$(timeout 200 srun --mpi=pmix --ntasks=2 --overcommit --cpu-bind=none "$program" generate --config "$config" \
  --prompt "$question" --set compute_dtype=float32 2>"$scratch/srun.log") || { cat "$scratch/srun.log" >&2; exit 1; }
answer() { python3 -c 'import json, sys; o = json.loads(sys.argv[1]); print(o["token_ids"], o["models"])' "$1"; }
[ "$(answer "$alone")" = "$(answer "$as_job")" ] || {
  printf 'slurm: the answers differ\n--- one process\n%s\n--- two tasks\n%s\n' "$alone" "$as_job" >&2
  exit 1
}
echo "slurm: srun --mpi=pmix: 2 tasks answer as one process does"

printf '{"id": "a", "prompt": "1 + 1 ="}\n' > "$scratch/prompts.jsonl"
TOKENROUTER=$program sbatch --wait --ntasks=2 --overcommit --output="$scratch/batch.log" launch/slurm/generate.sbatch \
  --config "$config" --prompts "$scratch/prompts.jsonl" --output "$scratch/answers.jsonl" --max-new-tokens 8 >/dev/null || {
  cat "$scratch/batch.log" >&2
  exit 1
}
grep -q '"id":"a"' "$scratch/answers.jsonl" || { echo "slurm: sbatch left no answer" >&2; exit 1; }
echo "slurm: generate.sbatch: answered"

# A task is killed in the middle: with the job told to go on, the others answer what it was asked.
for i in $(seq 120); do echo "{\"prompt\": \"Maya has $((340 + i)) stickers.\", \"max_new_tokens\": 160, \"ignore_eos\": true}"; done \
  > "$scratch/many.jsonl"
timeout 200 srun --mpi=pmix --no-kill --kill-on-bad-exit=0 --ntasks=3 --overcommit --cpu-bind=none \
  sh -c "[ \$SLURM_PROCID != 2 ] || echo \$\$ > $scratch/victim; exec $program generate --config $config \
    --set models.abacus-xs.ranks=[0] --set models.abacus-m.ranks=[1,2] --set system.on_peer_loss=degrade \
    --prompts $scratch/many.jsonl --output $scratch/many.out.jsonl" >"$scratch/degrade.log" 2>&1 &
job=$!
for _ in $(seq 600); do [ -s "$scratch/many.out.jsonl" ] && break; sleep 0.1; done
kill -KILL "$(cat "$scratch/victim")"
wait "$job" || true # srun's own code is that of the killed task
[ "$(wc -l < "$scratch/many.out.jsonl")" -eq 120 ] && grep -q "rank 2 is lost" "$scratch/degrade.log" || {
  cat "$scratch/degrade.log" >&2
  exit 1
}
echo "slurm: a killed task: the others answered all"
