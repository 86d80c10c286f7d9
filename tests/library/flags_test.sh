#!/usr/bin/env bash
# The flags that .bazelrc gives every object of this workspace must equal those of build_defs.bzl for other workspaces,
# except for those that only say how the compiler collects its garbage.
set -euo pipefail
ours="$(sed -nE 's/^build ((--(copt|cxxopt)=[^ ]+ ?|--host_cxxopt=[^ ]+ ?)+)$/\1/p' "$1" | tr ' ' '\n' |
  sed -nE 's/^--(copt|cxxopt)=//p' | { grep -v -e '^--param=ggc-' || true; } | sort)"
theirs="$(sort "$2")"
if [[ "${ours}" != "${theirs}" ]]; then
  diff <(printf '%s\n' "${ours}") <(printf '%s\n' "${theirs}") || true
  echo ".bazelrc and LOCKSTEP_COPTS in build_defs.bzl differ"
  exit 1
fi
printf '%s\n' "${ours}"
