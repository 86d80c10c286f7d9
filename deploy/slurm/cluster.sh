# shellcheck shell=bash
# Sourced by slurm_test.sh: a Slurm cluster of three nodes on loopback, for one test. Debian's slurmctld, slurmd and
# munged run as this user, keep all files below WORK, and end with the test. Sets SLURM_CONF.

NODES=(n1 n2 n3)

# Prints N consecutive ports on which nothing listens.
free_ports() {
  local base="" port
  while [[ -z "${base}" ]]; do
    base=$((20000 + RANDOM % 10000))
    for ((port = base; port < base + $1; port++)); do
      if (: <>"/dev/tcp/127.0.0.1/${port}") 2>/dev/null; then base=""; fi
    done
  done
  seq "${base}" $((base + $1 - 1))
}

# run_daemon NAME COMMAND...: runs the command with its own log. The processes that it starts inherit
# LOCKSTEP_TEST_NODE.
run_daemon() {
  local name="$1"
  shift
  LOCKSTEP_TEST_NODE="${WORK}/${name}" "$@" >"${WORK}/${name}.log" 2>&1 &
  pids+=("$!")
  disown # Keeps the shell from reporting its end.
}

write_configuration() {
  local user host
  local -a ports
  user="$(id -un)"
  host="$(hostname)"
  mapfile -t ports < <(free_ports 4)
  cat >"${WORK}/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=${host}(127.0.0.1)
SlurmUser=${user}
SlurmdUser=${user}
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=${WORK}/munge.socket
SlurmctldPort=${ports[0]}
SlurmctldPidFile=${WORK}/ctld.pid
SlurmdPidFile=${WORK}/%n.pid
StateSaveLocation=${WORK}/state
SlurmdSpoolDir=${WORK}/spool.%n
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=4
SlurmdParameters=config_overrides
KillWait=20
MinJobAge=600
NodeName=n[1-3] NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[1]}-${ports[3]} CPUs=4 RealMemory=500
PartitionName=p Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
  export SLURM_CONF="${WORK}/slurm.conf"
}

start_node() { run_daemon "$1" slurmd -D -N "$1" -f "${SLURM_CONF}"; }

nodes_are() { [[ "$(sinfo -h -N -o '%T' 2>/dev/null | sort -u | tr '\n' ' ')" == "$1 " ]]; }

# start_cluster: returns when all nodes are idle.
start_cluster() {
  write_configuration
  mkdir -p "${WORK}/state" "${WORK}"/spool.n{1,2,3}
  chmod 755 "${WORK}"
  dd if=/dev/urandom of="${WORK}/munge.key" bs=1024 count=1 status=none
  chmod 400 "${WORK}/munge.key"
  run_daemon munged munged --foreground --force --key-file="${WORK}/munge.key" --socket="${WORK}/munge.socket" \
    --pid-file="${WORK}/munge.pid" --log-file="${WORK}/munged.own.log" --seed-file="${WORK}/munge.seed" --num-threads=1
  await "munged answers" 10 test -S "${WORK}/munge.socket"
  run_daemon slurmctld slurmctld -D -f "${SLURM_CONF}"
  local node
  for node in "${NODES[@]}"; do start_node "${node}"; done
  await "three nodes are idle" 30 nodes_are idle
}

# Prints a node's processes: its slurmd, the slurmstepds, and the tasks with the processes that they have started.
processes_of_node() {
  {
    grep -lzxF "LOCKSTEP_TEST_NODE=${WORK}/$1" /proc/[0-9]*/environ
    grep -lzxF "SLURMD_NODENAME=$1" /proc/[0-9]*/environ | xargs -r grep -lzxF "SLURM_CONF=${SLURM_CONF}"
  } 2>/dev/null | tr -cd '0-9\n' | sort -un
}

# end_node NODE: ends all its processes at once, like a power failure.
end_node() {
  local -a doomed
  mapfile -t doomed < <(processes_of_node "$1")
  ((${#doomed[@]} == 0)) || kill -KILL "${doomed[@]}" 2>/dev/null
}

end_cluster() {
  local node
  scancel --state=RUNNING --user="$(id -un)" 2>/dev/null
  for node in "${NODES[@]}" slurmctld munged; do end_node "${node}"; done
}

job_state() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -1; }
job_is() { [[ "$(job_state "$1")" == "$2" ]]; }

# Starts a requeued job immediately. Slurm would wait two minutes.
start_now() { scontrol update "JobId=$1" StartTime=now; }
