#!/usr/bin/env bash
# `make demo`: a dev agent with this machine as a real node beside four simulated 8-GPU nodes, four jobs on them, where
# they landed and what they printed. Then it waits (STAY=0: ends), and takes away what it started, also on Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-$PWD/bin/nomadish} STAY=${STAY:-1} PORT=${PORT:-4646}
export NOMADISH_ADDR=http://127.0.0.1:$PORT NO_COLOR=1
unset NOMAD_ADDR NOMAD_TOKEN NOMAD_NAMESPACE NOMADISH_TOKEN NOMADISH_NAMESPACE

[ -x "$BIN" ] || { echo "demo: $BIN is not there; run make build" >&2; exit 1; }
if "$BIN" operator api /v1/status/leader >/dev/null 2>&1; then
  echo "demo: something already answers at $NOMADISH_ADDR; stop it first, or say PORT=5646" >&2
  exit 1
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/nomadish-demo.XXXXXX")
agent=""
cleanup() {
  local rc=$?
  trap - EXIT
  trap '' INT TERM
  if [ -n "$agent" ] && kill -0 "$agent" 2>/dev/null; then
    for job in clock training pair; do "$BIN" job stop -purge -detach "$job" >/dev/null 2>&1 || true; done
    wait_for 5 stopped || true
    kill -INT "$agent" 2>/dev/null || true
    wait_for 10 gone || kill -KILL "$agent" 2>/dev/null || true
    wait "$agent" 2>/dev/null || true
  fi
  if [ $rc -ne 0 ] && [ $rc -ne 130 ] && [ -s "$dir/agent.log" ]; then
    echo "demo: failed; the agent's last lines:" >&2
    tail -n 25 "$dir/agent.log" >&2
  fi
  rm -rf "$dir"
  exit $rc
}
wait_for() { # wait_for SECONDS FUNCTION
  local end=$((SECONDS + $1))
  until "$2"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}
leads() { "$BIN" operator api /v1/status/leader 2>/dev/null | grep -q :; }
nodes() { [ "$("$BIN" operator api /v1/nodes 2>/dev/null | grep -o '"Status": *"ready"' | wc -l)" -ge 5 ]; }
running() { "$BIN" operator api /v1/allocations 2>/dev/null | grep -o '"ClientStatus": *"running"' | wc -l; }
placed() { [ "$(running)" -eq 42 ]; } # the clock, 40 of training, and the pair of GPUs
gone() { ! kill -0 "$agent" 2>/dev/null; }
stopped() { [ "$(running)" -eq 0 ]; }
died() { echo "demo: $1 did not come about" >&2; exit 1; }
trap cleanup EXIT
trap 'exit 130' INT TERM

bold=$([ -t 1 ] && printf '\033[1m' || true) plain=$([ -t 1 ] && printf '\033[0m' || true)
show() { printf '\n%s$ nomadish %s%s\n' "$bold" "$*" "$plain"; "$BIN" "$@"; }

cat >"$dir/agent.hcl" <<HCL
data_dir = "$dir/data"
ports {
  http = $PORT
  rpc  = $((PORT + 1))
  serf = $((PORT + 2))
}
client {
  enabled         = true
  simulate        = "$PWD/examples/demo/dgx.hcl"
  simulate_beside = true
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
HCL
echo "starting the agent: this machine, and four simulated ones with 8 GPUs each"
# A group of its own, so that Ctrl-C reaches this script first and the agent is stopped in order.
set -m
"$BIN" agent -dev -config "$dir/agent.hcl" </dev/null >"$dir/agent.log" 2>&1 &
agent=$!
set +m
wait_for 20 leads || died "a leader"
wait_for 20 nodes || died "five ready nodes"

show node status
show job run examples/demo/report.nomad.hcl
show job run -detach examples/demo/clock.nomad.hcl
show job run -detach examples/demo/training.nomad.hcl
show job run -detach examples/gpu.nomad.hcl
wait_for 20 placed || died "42 running instances"
show job status
show job status report
show job status clock
echo
echo "what the processes of the batch job printed:"
"$BIN" job allocs -t '{{range .}}{{.ID}}{{"\n"}}{{end}}' report | while read -r id; do
  [ -z "$id" ] || "$BIN" alloc logs "$id"
done
show alloc logs -job clock
echo
echo "where the 40 instances of training were placed:"
"$BIN" job allocs -t '{{range .}}{{.NodeName}}{{"\n"}}{{end}}' training | sed '/^$/d' | sort | uniq -c
echo
echo "and where the two GPUs of pair lie, under one switch:"
show topology

if [ "$STAY" = 0 ]; then
  exit 0
fi
cat <<TEXT

The agent stays at $NOMADISH_ADDR. In another terminal, say:
  bin/nomadish job status training
  bin/nomadish alloc logs -f -job clock
  bin/nomadish job run examples/service.nomad.hcl
  bin/nomadish job run -detach examples/gang.nomad.hcl && bin/nomadish topology
Ctrl-C ends it and takes everything away.
TEXT
wait "$agent" || true
died "a longer life of the agent"
