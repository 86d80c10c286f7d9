#!/usr/bin/env bash
# Runs a real cluster in containers: a chief and three workers on a private network. During the run, one worker is
# killed, one loses its network, the chief is killed and then gets another logdir, and all are stopped and restarted.
# The final checkpoint must be identical to that of a single process without sockets. Meanwhile, the runs of
# docker/policies.yml end at their last step. At the end, the pods of deploy/kubernetes run with the restrictions in
# their templates, using LOCKSTEP_DEPLOY_PYTHON, a Python with yaml. The last line is "N passed, N failed". Everything
# that the test creates is removed.
# Usage: tests/docker/docker_test.sh [--full]   --full compiles inside the image on every host
set -euo pipefail

root="$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")"
cd "${root}"

if ! timeout 30 docker info >/dev/null 2>&1; then
  echo "docker-test: skipped: no Docker engine answers"
  exit 0
fi
if docker compose version >/dev/null 2>&1; then
  compose_command=(docker compose)
elif command -v docker-compose >/dev/null; then
  compose_command=(docker-compose)
else
  echo "docker-test: skipped: no docker compose. Install it with: apt-get install docker-compose"
  exit 0
fi

project="lockstep-test-$$"
work="$(mktemp -d)"
# A chief lingers for workers that start when it ends. Here all have started.
export LOCKSTEP_IMAGE="${project}" LOCKSTEP_CONFIG="${work}/run.textproto" LOCKSTEP_DATA="${root}/proto" LOCKSTEP_LINGER_SECONDS=3
passed=0
failed=0
prebuilt=0

compose() { "${compose_command[@]}" -p "${project}" -f docker/docker-compose.yml "$@"; }
policies() {
  LOCKSTEP_CONFIG="${work}/policies.textproto" "${compose_command[@]}" -p "${project}-policies" -f docker/policies.yml "$@"
}

# write_config FILE STEPS: writes a configuration whose run ends at this step. A container that mounts the file sees the
# new contents.
write_config() { sed "s/^training { steps: [0-9]*/training { steps: $2/" tests/docker/config.textproto >"$1"; }

clean_up() {
  docker rm -f "${project}-alone" "${project}-chief" "${project}-worker-0" "${project}-worker-1" >/dev/null 2>&1 || true
  docker network rm "${project}-program" >/dev/null 2>&1 || true
  docker volume rm "${project}-program" >/dev/null 2>&1 || true
  compose down --volumes --remove-orphans --timeout 5 >/dev/null 2>&1 || true
  policies down --volumes --timeout 5 >/dev/null 2>&1 || true
  docker ps -aq --filter "name=^${project}-pods" | xargs -r docker rm -f --volumes >/dev/null 2>&1 || true
  docker network rm "${project}-pods-job" "${project}-pods-jobset" >/dev/null 2>&1 || true
  docker volume ls -q --filter "name=^${project}-pods" | xargs -r docker volume rm >/dev/null 2>&1 || true
  docker image rm -f "${LOCKSTEP_IMAGE}" >/dev/null 2>&1 || true
  docker image prune -f --filter "label=lockstep.prebuilt=${project}" >/dev/null 2>&1 || true
  rm -rf "${work}"
}
trap clean_up EXIT
trap 'exit 143' INT TERM

say() { printf '%4ds %s\n' "${SECONDS}" "$*"; }

# give_up TEXT: ends the test, because no check can pass.
give_up() {
  say "FAILED: $*"
  compose logs --no-color --tail=30 2>/dev/null | cut -c1-300 || true
  echo "${passed} passed, $((failed + 1)) failed"
  exit 1
}

# check WHAT COMMAND...: runs one test.
check() {
  local what="$1"
  shift
  if "$@"; then
    passed=$((passed + 1))
    say "ok: ${what}"
  else
    failed=$((failed + 1))
    say "FAILED: ${what}"
  fi
}

# wait_for SECONDS COMMAND...: retries five times a second until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

build_image() {
  local -a build=(docker build --network=host -q -t "${LOCKSTEP_IMAGE}")
  if [[ "${1:-}" != --full ]] && grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
    # The host's own binaries can run in the image.
    prebuilt=1
    ./lockstep build
    mkdir -p "${work}/context/tools"
    cp -r lockstep docker "${work}/context"
    cp tools/install.sh tools/build.sh tools/progress.sh tools/fuzz.sh "${work}/context/tools"
    docker/collect.sh "${work}/context/${project}"
    build+=(--build-arg "PREBUILT=${project}" -f docker/Dockerfile "${work}/context")
  else
    build+=(-f docker/Dockerfile .)
  fi
  if ! "${build[@]}" >"${work}/build.log" 2>&1; then
    tail -n 40 "${work}/build.log"
    give_up "the image cannot be built"
  fi
}

container() { compose ps -q "$1" | sed -n "${2:-1}p"; }
state() { docker inspect --format "{{$2}}" "$1"; }
status() { timeout 10 docker exec "${chief}" lockstep status --master=grpc://localhost:2222 --json 2>/dev/null; }

# Prints the global step, or -1 while the chief does not answer.
step() {
  local answer
  answer="$(status | tr -d ' \n' | grep -oE '"global_step":"?[0-9]+' | grep -oE '[0-9]+$')" || true
  echo "${answer:--1}"
}
step_is_at_least() { (($(step) >= $1)); }
has_three_workers() { (($(status | grep -o '"session_id"' | wc -l) == 3)); }
has_state() { [[ "$(state "$1" .State.Status)" == "$2" ]]; }
is_healthy() { [[ "$(state "$1" .State.Health.Status)" == healthy ]]; }
all_have_exited() {
  local id
  for id in "$@"; do has_state "${id}" exited || return 1; done
}

# Kills the container's process from outside Docker if permitted, so that the restart policy acts. Otherwise Docker
# kills and restarts the container.
crash() {
  if [[ "$(id -u)" == 0 ]] && kill -9 "$(state "$1" .State.Pid)" 2>/dev/null; then
    return
  fi
  docker kill "$1" >/dev/null
  docker start "$1" >/dev/null
}
# Reads the whole log, because under pipefail, closing the pipe early would be an error.
restored() { docker logs "${chief}" 2>&1 | grep "restored step $1 " >/dev/null; }
was_restarted() { [[ "$(state "$1" .State.StartedAt)" != "$2" ]] && has_state "$1" running; }

if ! ./docker/make_base.sh; then
  echo "docker-test: skipped: the base image debian:bookworm-slim can neither be pulled nor made here"
  exit 0
fi
say "building the image"
build_image "$@"
say "image of $(($(docker image inspect --format '{{.Size}}' "${LOCKSTEP_IMAGE}") / 1000000)) MB"
run_in_image() { docker run --rm --network=none "${LOCKSTEP_IMAGE}" "$@" >/dev/null 2>&1; }
for command in $(docker run --rm --network=none "${LOCKSTEP_IMAGE}" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
  check "the image runs ${command}" run_in_image "${command}" --help
done
check "the image says its version" run_in_image --version

say "starting a chief and three workers"
# More steps than any machine computes during the disturbances. When these are over, the run gets its last step.
write_config "${LOCKSTEP_CONFIG}" 10000000
compose up -d --no-build --scale worker=3 >"${work}/up.log" 2>&1 || { cat "${work}/up.log"; give_up "compose up"; }
chief="$(container chief)"
workers=("$(container worker 1)" "$(container worker 2)" "$(container worker 3)")
# Slows down the workers, because a single process has to compute as many steps.
docker update --cpus 0.1 "${workers[@]}" >/dev/null
network="$(docker inspect --format '{{range $name, $n := .NetworkSettings.Networks}}{{$name}}{{end}}' "${chief}")"

readonly policy_steps=400
write_config "${work}/policies.textproto" "${policy_steps}"
policies up -d --no-build >"${work}/up.log" 2>&1 || { cat "${work}/up.log"; give_up "compose up of docker/policies.yml"; }

check "the chief does not run as root" [ "$(docker exec "${chief}" id -u)" != 0 ]
check "the cluster trains" wait_for 60 step_is_at_least 100
(($(step) >= 0)) || give_up "the chief does not answer"

docker kill "${workers[0]}" >/dev/null
docker network disconnect "${network}" "${workers[1]}"
now="$(step)"
check "one worker continues from step ${now}, with one killed and one cut off" wait_for 60 step_is_at_least $((now + 100))
docker start "${workers[0]}" >/dev/null
docker network connect "${network}" "${workers[1]}"

began="$(state "${chief}" .State.StartedAt)"
now="$(step)"
crash "${chief}"
check "the killed chief restarts" wait_for 60 was_restarted "${chief}" "${began}"
check "it trains on after step ${now}" wait_for 90 step_is_at_least $((now + 100))

began="$(state "${workers[2]}" .State.StartedAt)"
crash "${workers[2]}"
check "the killed worker restarts" wait_for 60 was_restarted "${workers[2]}" "${began}"

check "all three workers are members again" wait_for 60 has_three_workers

# Starts a chief with another logdir, which contains no run. Its restart policy restarts it repeatedly, and the running
# workers do not let it train.
other_chief() {
  printf 'services:\n  chief:\n    command: [chief, /config/run.textproto, "--listen=0.0.0.0:2222", --insecure, %s]\n' "$1" >"${work}/other.yml"
  compose -f "${work}/other.yml" up -d --no-build --no-deps chief >"${work}/up.log" 2>&1 || { cat "${work}/up.log"; give_up "compose up"; }
  chief="$(container chief)"
}
own_chief() {
  compose up -d --no-build --no-deps chief >"${work}/up.log" 2>&1 || { cat "${work}/up.log"; give_up "compose up"; }
  chief="$(container chief)"
}
restarts() { state "$1" .RestartCount; }
has_restarted() { (($(restarts "$1") >= $2)); }
ended_with() { [[ "$(state "$1" .State.ExitCode)" == "$2" ]]; }
says() { docker logs "$1" 2>&1 | grep -F -- "$2" >/dev/null; }
run_id() { status | sed -n 's/.*"run_id": "\(.*\)".*/\1/p' || true; }
now="$(step)"
run="$(run_id)"
before="$(for id in "${workers[@]}"; do restarts "${id}"; done)"
other_chief '"--logdir=/tmp/empty"'
check "a chief that finds no run ends, and is restarted" wait_for 60 has_restarted "${chief}" 3
# A running container has no exit code.
check "with exit code 2" wait_for 30 ended_with "${chief}" 2
check "it names the run of its workers, ${run:-none}" says "${chief}" "has served run ${run} up to step"
check "it has trained nothing" [ "$(docker logs "${chief}" 2>&1 | grep -c 'saved ')" == 0 ]
check "no worker was restarted" [ "$(for id in "${workers[@]}"; do restarts "${id}"; done)" == "${before}" ]
own_chief
check "with its own logdir it trains on after step ${now}" wait_for 90 step_is_at_least $((now + 10))
check "the run is the same" [ "$(run_id)" == "${run}" ]

other_chief '"--logdir=/tmp/empty", --new_run'
check "with --new_run, it refuses the workers, which restart and train the new run" wait_for 90 step_is_at_least 10
check "the new run has another id" [ "$(run_id)" != "${run}" ]
own_chief
check "and back" wait_for 90 step_is_at_least $((now + 20))
check "all three workers are members of it" wait_for 60 has_three_workers

# Docker stops the workers first, then the chief.
now="$(step)"
compose stop >/dev/null 2>&1
check "the stopped chief ends with 143" [ "$(state "${chief}" .State.ExitCode)" == 143 ]
for id in "${workers[@]}"; do
  check "$(state "${id}" .Name) is stopped, with 143" [ "$(state "${id}" .State.ExitCode)" == 143 ]
done
stopped="$(docker logs "${chief}" 2>&1 | sed -n 's/.*stopped at step \([0-9]*\), saved .*/\1/p' | tail -n 1)"
check "it has saved its last step, ${stopped:-none}, after ${now}" [ "${stopped:-0}" -ge "${now}" ]
last=$((${stopped:-0} + 100))
write_config "${LOCKSTEP_CONFIG}" "${last}"
docker run -d --name "${project}-alone" --network=none -v "${LOCKSTEP_CONFIG}:/run.textproto:ro" --entrypoint sh \
  "${LOCKSTEP_IMAGE}" -c 'lockstep local /run.textproto --logdir=/tmp/alone >&2 && lockstep inspect --digest /tmp/alone' >/dev/null
compose start >/dev/null 2>&1
check "it resumes from that step" wait_for 60 restored "${stopped:-0}"
check "and trains" wait_for 60 step_is_at_least $((stopped + 10))

docker update --cpus 2 "${workers[@]}" >/dev/null
check "every container ends when step ${last} is done" wait_for 300 all_have_exited "${chief}" "${workers[@]}"
for id in "${chief}" "${workers[@]}"; do
  check "$(state "${id}" .Name) ended with 0" [ "$(state "${id}" .State.ExitCode)" == 0 ]
done

digest() { grep -oE '[0-9a-f]{64}' | head -n 1; }
volume="$(docker inspect --format '{{range .Mounts}}{{if eq .Destination "/logdir"}}{{.Name}}{{end}}{{end}}' "${chief}")"
cluster="$(docker run --rm --network=none -v "${volume}:/logdir:ro" "${LOCKSTEP_IMAGE}" inspect --digest /logdir | digest)" || true
alone=""
[[ "$(timeout 300 docker wait "${project}-alone")" == 0 ]] && alone="$(docker logs "${project}-alone" 2>/dev/null | digest)"
say "cluster ${cluster:-none}, one process ${alone:-none}"
check "the weights are those of one process" [ -n "${cluster}" -a "${cluster}" == "${alone}" ]

# The chiefs and workers of docker/policies.yml ended long ago.
mapfile -t ids < <(policies ps -aq 2>/dev/null || policies ps -q)
check "docker/policies.yml has eight containers" [ "${#ids[@]}" == 8 ]
check "they end" wait_for 60 all_have_exited "${ids[@]}"
for id in "${ids[@]}"; do
  check "$(state "${id}" .Name) ended with 0" [ "$(state "${id}" .State.ExitCode)" == 0 ]
done
for policy in async:ASYNC first:FIRST_ARRIVALS; do
  id="$(policies ps -q "${policy%:*}-chief")"
  check "the policy of ${policy%:*} is ${policy#*:}" says "${id}" "policy ${policy#*:}: "
  check "its run ends at step ${policy_steps}" says "${id}" "finished at step ${policy_steps}"
done

# Runs a user's program built on this host: its chief, which also computes, and two workers, one of which is killed and
# restarted.
run_program() {
  local name="$1"
  shift
  docker run -d --name "${project}-${name}" --hostname "${name}" --network "${project}-program" --cpus 0.4 \
    -v "${work}/program:/program:ro" -v "${project}-program:/logdir" --entrypoint /program "${LOCKSTEP_IMAGE}" "$@" >/dev/null
}
program_logs() { docker logs "${project}-$1" 2>&1; }
program_is_at() {
  local last
  last="$(program_logs chief | sed -n 's/^step \([0-9]*\):.*/\1/p' | tail -n 1)"
  ((${last:--1} >= $1))
}
if [[ "${prebuilt}" == 1 ]]; then
  ./lockstep exec //examples:supervisor --help >/dev/null || give_up "the program cannot be built"
  install -m 755 .bz/out/k8-opt/bin/examples/supervisor "${work}/program"
  docker network create "${project}-program" >/dev/null
  run_program chief --listen=0.0.0.0:2222 --insecure --logdir=/logdir --steps=30000
  for worker in 0 1; do run_program "worker-${worker}" --master=grpc://chief:2222 "--task_index=${worker}"; done
  check "a program's chief trains" wait_for 60 program_is_at 500
  docker kill "${project}-worker-0" >/dev/null
  docker start "${project}-worker-0" >/dev/null
  ids=("${project}-chief" "${project}-worker-0" "${project}-worker-1")
  check "its containers end when the last step is done" wait_for 120 all_have_exited "${ids[@]}"
  for id in "${ids[@]}"; do
    check "${id#"${project}-"} of the program ended with 0" [ "$(state "${id}" .State.ExitCode)" == 0 ]
  done
  cluster="$(docker run --rm --network=none -v "${project}-program:/logdir:ro" "${LOCKSTEP_IMAGE}" inspect --digest /logdir | digest)" || true
  "${work}/program" "--logdir=${work}/alone" --steps=30000 >/dev/null 2>&1 || true
  alone="$(./lockstep inspect --digest "${work}/alone" | digest)" || true
  check "its weights are those of one process" [ -n "${cluster}" -a "${cluster}" == "${alone}" ]
  ((failed == 0)) || for id in "${ids[@]}"; do docker logs --tail=20 "${id}" 2>&1 | cut -c1-300; done
fi

# pods NAME: runs the pods in a manifest.
pods() {
  "${LOCKSTEP_DEPLOY_PYTHON}" tests/docker/pods.py "${LOCKSTEP_IMAGE}" "${project}-pods-$1" "deploy/kubernetes/$1.yaml" \
    >"${work}/$1.log" 2>&1 || {
    cat "${work}/$1.log"
    return 1
  }
}
if [[ -n "${LOCKSTEP_DEPLOY_PYTHON:-}" ]]; then
  pods job &
  job="$!"
  check "the pods of deploy/kubernetes/jobset.yaml" pods jobset
  check "the pods of deploy/kubernetes/job.yaml" wait "${job}"
elif [[ "${CI:-}" == true ]]; then
  check "the pods of deploy/kubernetes have a Python with yaml" false
else
  say "the pods of deploy/kubernetes: skipped, set LOCKSTEP_DEPLOY_PYTHON to a Python with yaml"
fi

((failed == 0)) || docker logs --tail=20 "${project}-alone"
((failed == 0)) || compose logs --no-color --tail=30 2>/dev/null | cut -c1-300
echo "${passed} passed, ${failed} failed"
((failed == 0))
