#!/usr/bin/env bash
# Checks which folder may depend on which: {proto, kernels} <- common <- {server, worker} <- train <- cli <- capi <- python <- {tests, examples},
# where server and worker must not depend on each other, only a few folders use gRPC, only the executor makes threads,
# and the sources of kernels include only Highway and the standard library. Reads the targets from Bazel, and the
# includes from the sources (system headers are found without a dependency). Prints each offending edge, each cycle of
# folders, each folder with more than 30 files, and what is missing from //:library, which is all of Lockstep for other
# workspaces.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# Code that may refer to gRPC: these folders and the programs, as targets ("//proto:x") or files ("proto/x.h").
grpc_folders='^(//)?((proto|common/transport|server/rpc|tests)[/:]|(server.chief|worker.worker|cli.lockstep)_main(\\.cc)?$)'

edges() {
  bazel query --noshow_progress --noimplicit_deps --notool_deps --output=graph --nograph:factored 'deps(//..., 1)' |
    sed -nE 's/^ *"([^"]+)" -> "([^"]+)"$/\1 \2/p'
}

includes() {
  git ls-files '*.h' '*.cc' | xargs -r grep -HE '^ *# *include' |
    sed -nE 's/^([^:]+): *# *include *["<]([^">]+)[">].*/\1 \2/p' | sed -E 's#^([^ ]+) lockstep/(v1|config)/#\1 proto/\2/#; s#^([^ ]+) lockstep/#\1 #'
}

# Code that may create threads: common/base/threads/executor, and everything that is not production code. A name such as
# std::thread counts as an include of <thread>, because other headers may include it.
thread_users='^(tests/|.*/testing/|.*_(test|benchmark)\\.cc$|common/base/threads/executor\\.cc$)'

# The kernels, and the headers that they may include: each other's, Highway's, and C++ headers, whose names have no
# suffix. The code that queries the processor before anything else runs also uses system headers.
kernels='^kernels/([a-z]+/)?[^/]*\\.(h|cc)$'
asks_processor='^kernels/vectors/required_instructions\\.cc$'
kernel_includes='^(kernels/([a-z]+/)?[^/]*|hwy/.*|[a-z_]+)$'

test_of_kernels='^(//)?kernels/testing[/:]|^(//)?kernels[/:].*_test(\\.cc)?$'

thread_names() {
  git ls-files '*.h' '*.cc' | xargs -r grep -lE 'std::(thread|jthread|async)\b' | sed 's/$/ thread/'
}

# Reads "from to" lines, and prints those that violate the order.
offending() {
  awk -v grpc_folders="${grpc_folders}" -v thread_users="${thread_users}" \
    -v kernels="${kernels}" -v test_of_kernels="${test_of_kernels}" -v asks_processor="${asks_processor}" -v kernel_includes="${kernel_includes}" -v what="$1" '
    BEGIN {
      allowed["proto"] = "proto"
      allowed["kernels"] = "kernels"
      allowed["common"] = "common kernels proto"
      allowed["server"] = "server common kernels proto"
      allowed["worker"] = "worker common kernels proto"
      allowed["train"] = "train server worker common kernels proto"
      allowed["cli"] = "cli train server worker common kernels proto"
      allowed["capi"] = "capi cli train server worker common kernels proto"
      allowed["python"] = "python capi cli train server worker common kernels proto"
      allowed["examples"] = "examples python capi cli train server worker common kernels proto"
      allowed["tests"] = "tests examples python capi cli train server worker common kernels proto"
      split("proto kernels common server worker train cli capi python tests examples", names, " ")
      for (i in names) ours[names[i]] = 1
    }
    function folder(path) { sub(/^\/\//, "", path); sub(/[\/:].*/, "", path); return path }
    {
      from = folder($1)
      to = folder($2)
      if (!(from in ours)) next
      # Expected results are data, which a test may read from anywhere.
      if ($1 ~ /_test$/ && $2 ~ /^\/\/tests\/golden:[^:]*\.txt$/) next
      # The command line hands out examples as text.
      if (from == "cli" && $2 ~ /^\/\/examples:[^:]*\.textproto$/) next
      # Tests of kernels use the random numbers and the buffers of common.
      if (from == "kernels" && to == "common" && $1 ~ test_of_kernels) next
      if (to in ours && index(" " allowed[from] " ", " " to " ") == 0) print what ": " $1 " -> " $2
      if (($2 ~ /^@com_github_grpc_grpc/ || $2 ~ /^grpc/) && $1 !~ grpc_folders) print what ": " $1 " -> " $2
      if ($1 ~ kernels && $1 !~ asks_processor && $1 !~ test_of_kernels && $2 !~ kernel_includes) print what ": " $1 " -> " $2
      if ($2 ~ /^(thread|future)$/ && $1 !~ thread_users) print what ": " $1 " -> " $2
    }'
}

found="$(edges | offending dependency)" # The script ends here if the query fails.
found+="$({ includes && thread_names; } | offending include | sort -u)"
if [[ -n "${found}" ]]; then
  printf 'These break the order of the folders (docs/architecture.md):\n%s\n' "${found}" >&2
  exit 1
fi

# A production folder must not depend on a folder that depends on it.
rooms() {
  includes | grep -vE '^(tests/|[^ ]*/testing/|[^ ]*_(test|benchmark)\.cc )' |
    sed -nE 's#^([^ ]+)/[^/ ]+ ([^ ]+)/[^/ ]+$#\1 \2#p' | grep -E ' (kernels|common|server|worker|train|cli|capi|python|examples)(/|$)' | awk '$1 != $2' | sort -u
}
if ! circle="$(rooms | tsort 2>&1 >/dev/null)"; then
  printf 'These folders depend on one another:\n%s\n' "${circle}" >&2
  exit 1
fi

full="$(git ls-files '*/*' | sed 's#/[^/]*$##' | sort | uniq -c | awk '$1 > 30')"
if [[ -n "${full}" ]]; then
  printf 'These folders have more than 30 files:\n%s\n' "${full}" >&2
  exit 1
fi

missing="$(bazel query --noshow_progress --ui_event_filters=-info 'let ours = kind("cc_library rule", //... except //tests/... except //third_party/... except //:all) in
  $ours except attr(testonly, 1, $ours) except deps(//:library)')"
if [[ -n "${missing}" ]]; then
  printf 'These are not in //:library (BUILD):\n%s\n' "${missing}" >&2
  exit 1
fi
