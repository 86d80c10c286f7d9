#!/usr/bin/env bash
# The flags that .bazelrc gives every object in this workspace must be the same as those that build_defs.bzl gives other
# workspaces, except for flags that cannot change bits: those of the compiler's garbage collection and of inlining.
set -euo pipefail
ours="$(sed -nE 's/^build ((--(copt|cxxopt)=[^ ]+ ?|--host_cxxopt=[^ ]+ ?)+)$/\1/p' "$1" | tr ' ' '\n' |
  sed -nE 's/^--(copt|cxxopt)=//p' | { grep -v -e '^--param=ggc-' -e '^-fno-semantic-interposition$' || true; } | sort)"
theirs="$(sort "$2")"
if [[ "${ours}" != "${theirs}" ]]; then
  diff <(printf '%s\n' "${ours}") <(printf '%s\n' "${theirs}") || true
  echo ".bazelrc and LOCKSTEP_COPTS in build_defs.bzl differ"
  exit 1
fi
printf '%s\n' "${ours}"
