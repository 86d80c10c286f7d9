#!/usr/bin/env bash
# Checks that the state machines of the heart stay pure: events and the time in, effects as values out. Each file on the
# list, with all headers of ours that it includes, but for those of data, includes no lock, clock, executor, callback,
# log, file system or gRPC. Prints each offending chain of includes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# Paths without suffix, as shell patterns; each stands for its .h and .cc.
pure=(
  common/base/stop_requests
  common/step/contribution_checker
  common/step/frame_builder
  common/step/held_estimates
  common/step/received_values
  common/step/slot_block
  server/chief/end_wish
  server/chief/read_table
  server/chief/run_life
  server/chief/run_target
  server/chief/save_pace
  server/chief/save_queue
  server/chief/save_schedule
  server/chief/session_table
  server/rpc/step_pump
  server/sync/deadline_queue
  server/sync/policy/deterministic
  server/sync/policy/slot_audit
  server/sync/policy/step_policy
  server/sync/policy/worker_roster
  server/sync/slot_leases
  server/sync/slot_map
  server/sync/step_machine
  server/sync/step_rates
  server/sync/unfinished_blocks
  server/sync/worker_state
  worker/session/session_retries
  worker/session/worker_protocol
)

forbidden='^(lockstep/)?common/(base/(mutex|clock|executor|periodic_task|thread_pool|coordinator)|io/file_system)\.h$'
forbidden+='|^(functional|thread|mutex|condition_variable|future|fstream|iostream)$|^absl/(functional|synchronization)/'
forbidden+='|^grpc'
# glog may be included for its CHECKs; what it logs goes to a file.
logs='\b(V?LOG|DLOG|P?LOG_[A-Z_]+)\('
# Headers of ours that hold data, whose classes happen to be used with locks elsewhere.
data='^(lockstep/)?(common/tensor/|server/ps/|proto/)'

includes() { sed -nE 's/^ *# *include *["<]([^">]+)[">].*/\1/p' "$1"; }

found=""
checked=0
# check FILE CHAIN: appends the offending includes of FILE, reached through CHAIN.
declare -A seen
check() {
  local file="$1" chain="$2" header path
  [[ -z "${seen[${file}]:-}" ]] || return 0
  seen["${file}"]=1
  while read -r header; do
    if [[ "${header}" =~ ${forbidden} ]]; then
      found+="${chain} -> ${header}"$'\n'
      continue
    fi
    path="${header#lockstep/}"
    [[ -f "${path}" && ! "${header}" =~ ${data} ]] || continue
    check "${path}" "${chain} -> ${header}"
  done < <(includes "${file}")
}

for pattern in "${pure[@]}"; do
  matched=0
  for file in ${pattern}.h ${pattern}.cc; do
    [[ -f "${file}" ]] || continue
    matched=1
    checked=$((checked + 1))
    seen=()
    check "${file}" "${file}"
    if grep -qE "${logs}" "${file}"; then found+="${file} logs"$'\n'; fi
  done
  [[ "${matched}" == 1 ]] || found+="${pattern}: there is no such file"$'\n'
done

if [[ -n "${found}" ]]; then
  printf 'These are no longer pure (docs/architecture.md):\n%s' "${found}" >&2
  exit 1
fi
printf '%d pure files\n' "${checked}"
