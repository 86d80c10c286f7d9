# shellcheck shell=bash
# Sourced by ./lockstep: shows the progress of a command that writes to the log.
# Reads LOG. Calls the caller's say.

# Prints apt's progress, given its log: apt fetches, unpacks and sets up each package.
apt_progress() {
  awk '
    /newly installed/ { for (i = 1; i < NF; i++) if ($i == "upgraded," || ($i == "newly" && $(i + 1) ~ /^installed/)) all += $(i - 1) }
    /^Get:/ { fetched++ }
    /^Unpacking / { unpacked++ }
    /^Setting up / { ready++ }
    END {
      if (!all) exit
      if (ready) print ready " of " all " packages set up"
      else if (unpacked) print unpacked " of " all " packages unpacked"
      else print fetched + 0 " of " all " packages fetched"
    }'
}

# Prints Bazel's progress, given its log.
bazel_progress() {
  sed -nE 's/^\[([0-9,]+) \/ ([0-9,]+)\] ([0-9,]+) \/ ([0-9,]+) tests.*/\3 of \4 tests, \1 of \2 actions/p
    t
    s/^\[([0-9,]+) \/ ([0-9,]+)\].*/\1 of \2 actions/p' | tail -n 1
}

# Prints no progress.
no_progress() { cat >/dev/null; }

# Converts 75 to "1m15s".
in_minutes() {
  if (($1 < 60)); then printf '%ds' "$1"; else printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); fi
}

# Shows WHAT, the progress that SHOW reads from the log starting at line FIRST, and the elapsed time, until it is killed
# or the shell OWNER ends. On a terminal, updates one line each second. Otherwise, prints a line after 20 s, 60 s, 140
# s, … and then every 160 s.
watch_log() {
  local what="$1" show="$2" first="$3" owner="$4" began="${SECONDS}" pause=20 next text never
  next=$((began + pause))
  exec {never}<> <(:) # Allows pauses without a separate process, which would outlive this one.
  while kill -0 "${owner}" 2>/dev/null; do
    read -rt 1 -u "${never}" || true
    [[ -t 2 || "${SECONDS}" -ge "${next}" ]] || continue
    text="$(tail -n "+${first}" "${LOG}" | "${show}")" || true
    text="${what}: ${text:+${text}, }$(in_minutes $((SECONDS - began)))"
    if [[ -t 2 ]]; then
      printf '\r\033[Klockstep: %s' "${text:0:100}" >&2
    else
      say "${text}"
      pause=$((pause < 160 ? 2 * pause : 160))
      next=$((SECONDS + pause))
    fi
  done
}

# with_progress WHAT SHOW COMMAND...: runs a command that writes to the log, and shows its progress. Returns its status.
with_progress() {
  local what="$1" show="$2" watch status=0
  shift 2
  watch_log "${what}" "${show}" "$(($(wc -l <"${LOG}") + 1))" "$$" &
  watch=$!
  "$@" || status=$?
  kill "${watch}" 2>/dev/null || true
  wait "${watch}" 2>/dev/null || true
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  return "${status}"
}
