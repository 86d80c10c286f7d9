# shellcheck shell=bash
# Sourced by tests of real processes. Creates a folder for their files, kills the processes at exit, and checks
# expectations. Sets WORK, pids (the processes to kill) and failures.
WORK="$(mktemp -d)"
readonly WORK
pids=()
failures=0

cleanup() {
  ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null
  rm -rf "${WORK}"
}
trap cleanup EXIT

expect() {
  [[ "$2" == "$3" ]] && return
  printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
  failures=$((failures + 1))
}

# start LOG PROGRAM ARGUMENTS...: sets PID.
start() {
  local log="$1"
  shift
  "$@" >"${log}" 2>&1 &
  PID=$!
  pids+=("${PID}")
}

# ends WHAT CODE PID: waits for the process and expects its exit code.
ends() {
  local code=0
  wait "$3" || code=$?
  expect "$1" "$2" "${code}"
}

# expect_said WHAT TEXT LOG: expects the text in the log.
expect_said() {
  grep -qF -- "$2" "$3" && return
  printf 'FAILED: %s\n  expected: %s\n  in the log:\n' "$1" "$2"
  tail -n 20 "$3"
  failures=$((failures + 1))
}

# await_said TEXT LOG PROCESS: waits until the log has the text or the process has ended.
await_said() {
  until grep -qF -- "$1" "$2"; do
    kill -0 "$3" 2>/dev/null || break
    sleep 0.05
  done
}

# await WHAT SECONDS COMMAND...: retries until the command succeeds.
await() {
  local end=$((SECONDS + $2))
  until "${@:3}"; do
    if ((SECONDS >= end)); then
      expect "$1" "within $2 s" "not so"
      return 1
    fi
    sleep 0.02
  done
}

# count_updates STEPS EVERY LEASE: prints the configuration of an asynchronous run that saves every EVERY steps.
# The weight never reaches the target, so the gradient of |w x - y| with x = 1 is 1 at every step.
count_updates() {
  printf 'x,y\n1,-100000000\n1,-100000000\n' >"${WORK}/ones.csv"
  cat <<CONFIGURATION
model {
  layer { name: "count" dense { units: 1 no_bias: true kernel_initializer { zeros {} } } }
  loss { absolute_difference {} }
}
input {
  split { name: "train" csv { file: "${WORK}/ones.csv" column { name: "x" } column { name: "y" type: TARGET } } }
  batch_size: 1
}
optimizer { sgd {} learning_rate { initial: 1 } }
training { steps: $1 seed: 3 async { max_staleness: 8 } }
checkpoint { every_steps: $2 keep: 0 }
cluster { lease_seconds: $3 }
CONFIGURATION
}
