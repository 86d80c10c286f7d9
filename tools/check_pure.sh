#!/usr/bin/env bash
# Checks that the core state machines stay pure: events and the time in, effects as values out. No file on the list may
# use a lock, clock, thread, executor, callback, log, file or gRPC, and neither may the headers of ours that it includes
# and their sources, except for data headers. Prints each offending chain of includes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# Paths without a suffix, as shell patterns. Each stands for its .h and .cc.
pure=(
  common/base/process/stop_requests
  server/sync/machine/contribution_checker
  common/client/gradients/frame_builder
  common/client/values/held_estimates
  common/client/values/received_values
  common/step/slot_block
  server/chief/run/finish_request
  server/chief/journal/idle_log
  server/chief/journal/step_history
  server/chief/checkpoint/brought_values
  server/chief/reads/read_table
  server/chief/run/run_life
  server/chief/run/run_target
  server/chief/checkpoint/save_pace
  server/chief/checkpoint/save_queue
  server/chief/checkpoint/save_schedule
  server/chief/session_table
  server/rpc/step/step_pump
  server/sync/workers/deadline_queue
  server/sync/policy/async
  server/sync/policy/deterministic
  server/sync/policy/first_arrivals
  server/sync/policy/policy_factory
  server/sync/policy/slot_audit
  server/sync/policy/step_policy
  server/sync/policy/stream_table
  server/sync/workers/waiting_line
  server/sync/policy/worker_ledger
  server/sync/policy/slot_queue
  server/sync/policy/slot_map
  server/sync/machine/run_event
  server/sync/machine/staging_places
  server/sync/machine/step_machine
  server/sync/workers/step_rates
  server/sync/machine/sum_admission
  server/sync/workers/token_leases
  server/sync/workers/work_times
  server/sync/workers/worker_state
  worker/session/session_retries
  worker/session/worker_protocol
)

own='mutex|clock|executor|periodic_task|thread_pool|process|system_random|trace_recorder'
forbidden="^(lockstep/)?common/(base/([a-z]+/)?(${own})|io/[a-z_]*file[a-z_]*)\\.h\$"
forbidden+='|^(functional|thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|stop_token)$'
forbidden+='|^(chrono|c?time|time\.h|cstdio|stdio\.h|filesystem|fstream|iostream|syncstream)$'
forbidden+='|^(pthread|semaphore|unistd|fcntl|poll|threads)\.h$|^sys/'
forbidden+='|^absl/(functional|synchronization|log)/|^absl/time/clock\.h$'
forbidden+='|^grpc'
# Names that need none of these headers, or come from other headers. glog may be included for its CHECKs, but its log
# goes to a file.
calls='\b(ABSL_|SYS)?[DVP]{0,2}LOG(_[A-Z_]+)?[[:space:]]*\('
calls+='|\babsl::(Now|SleepFor|GetCurrentTimeNanos)\b|\bstd::(chrono|filesystem|function|thread|random_device)\b'
calls+='|\bstd::(remove|rename|tmpfile|fopen|printf|time|clock|system|getenv)[[:space:]]*\('
# Headers of ours that contain data. Their classes happen to be used with locks elsewhere.
data='^(lockstep/)?(common/tensor/|common/memory/aligned_buffer\.h|server/ps/|proto/)'

includes() { sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">].*/\1/p' "$1"; }
# Prints the file without its line comments.
code() { sed -E 's|//.*||' "$1"; }

found=""
checked=0
# check FILE CHAIN: appends what is forbidden in FILE, which was reached through CHAIN.
declare -A seen
check() {
  local file="$1" chain="$2" header path call
  [[ -z "${seen[${file}]:-}" ]] || return 0
  seen["${file}"]=1
  call="$(code "${file}" | grep -oEm1 "${calls}" | head -n1 || true)"
  [[ -z "${call}" ]] || found+="${chain}: ${call}"$'\n'
  while read -r header; do
    if [[ "${header}" =~ ${forbidden} ]]; then
      found+="${chain} -> ${header}"$'\n'
      continue
    fi
    path="${header#lockstep/}"
    [[ -f "${path}" && ! "${header}" =~ ${data} ]] || continue
    check "${path}" "${chain} -> ${header}"
    [[ ! -f "${path%.h}.cc" ]] || check "${path%.h}.cc" "${chain} -> ${header%.h}.cc"
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
  done
  [[ "${matched}" == 1 ]] || found+="${pattern}: there is no such file"$'\n'
done

if [[ -n "${found}" ]]; then
  printf 'These are no longer pure (docs/architecture.md):\n%s' "${found}" >&2
  exit 1
fi
printf '%d pure files\n' "${checked}"
