#!/usr/bin/env bash
# Runs check_english.sh on a small repository. Tests which texts count, when a number passes, fails, is lowered or
# stays, and how long a test's name may be.
set -euo pipefail
TREE="${TEST_TMPDIR:-$(mktemp -d)}/tree"
readonly TREE

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

check() { "${TREE}/tools/check_english.sh" "$@"; }

# write PATH LINE...: creates a file with these lines.
write() {
  local path="$1"
  shift
  mkdir -p "$(dirname "${TREE}/${path}")"
  printf '%s\n' "$@" >"${TREE}/${path}"
}

# expect_list PATH LINE...: expects that --list prints these lines for PATH.
expect_list() {
  local path="$1"
  shift
  diff <(printf '%s\n' "$@") <(check --list "${path}") || fail "--list ${path} differs"
}

# expect_number TEXT: expects that english.txt contains TEXT.
expect_number() { [[ "$(cat "${TREE}/tools/english.txt")" == "$1" ]] || fail "english.txt is not $1"; }

# expect_failure TEXT [ARGUMENT...]: expects that the check fails and prints TEXT.
expect_failure() {
  local expected="$1" output
  shift
  if output="$(check "$@" 2>&1)"; then fail "passed, but should say: ${expected}"; fi
  [[ "${output}" == *"${expected}"* ]] || fail "printed \"${output}\" without \"${expected}\""
}

mkdir -p "${TREE}/tools"
cp tools/check_english.sh tools/check_english.py "${TREE}/tools"
: >"${TREE}/tools/english.txt"
git -C "${TREE}" init --quiet
printf 'tools/\n' >"${TREE}/.gitignore"

# Every expression counts when it is the only one in a comment.
bad=(
  "What came of it." "Of the slot in its block." "From the kink." "In place of a copy." "For the tests."
  "For those of the step, nothing." "For that of the step, nothing."
  "For what follows, nothing." "One of a worker." "Those of the step." "That of the thread." "Such a step is lost."
  "The same, of one setting." "Whether there is one." "How it ended." "Where it runs."
  "Which one is due." "Whose it is."
  "Nor the next one." "Else the last one." "In which it runs." "By what it runs." "To whose worker it belongs."
  "On which it runs." "At which it runs." "With which it runs." "When it was read." "When it was read: then, or later."
  "Who asked first." "The worker whom it serves." "Blocks whoever asks." "Blocks whomever it asks."
  "Nobody waits." "Blocks somebody." "The step is to be saved." "Two are to be saved." "A worker is told the end."
  "The untold end." "Starts anew." "The run goes on." "Steps go on." "A run going on." "The run went on."
  "It comes to an end." "Ends come to it." "It came to an end." "Refused for good." "Sent by now." "The fate of a step."
  "Has two fates." "A wish of the user." "Two wishes of users." "A visitor." "Bounds visitors."
  "The shelf of buffers." '"Whose it is."'
)
good=(
  "Returns whether a token is open." "The outcome of one run." "For each slot of the block." "For every slot of it."
  "For example one slot." "For instance one slot." "For 64-bit values, the high half is zero."
  "When the lease expires, the slot is issued again." "What is a step?" "Whatever the order, the sum is the same."
  "Formatted text." "Callers may wish to copy it." "Goes online." "The whole block." "Bytes of each frame."
)
code=() listed=() line=0
for text in "${bad[@]}"; do
  line=$((line + 1))
  code+=("// ${text}" "int x${line};")
  listed+=("all/all.cc:$((2 * line - 1)): ${text}")
done
write all/all.cc "${code[@]}"
expect_list all "${listed[@]}" "all: 1000 per 1,000 (${line} of ${line})"
code=() line=0
for text in "${good[@]}"; do
  line=$((line + 1))
  code+=("// ${text}" "int x${line};")
done
write all/all.cc "${code[@]}"
expect_list all "all: 0 per 1,000 (0 of ${line})"

# A block of comment lines is one comment. A license, a directive and the comment at the end of a line of code do not
# count.
write code/a.h '// Copyright. What it costs.' '' \
  '/// The sum of a' '/// step. What follows.' 'int x;  // Of it.' '// NOLINT'
write code/b.py '#!/usr/bin/env python3' '"""What it does' '' 'Another line."""' '' '# Reads.' 'x = "What"'
write code/BUILD '# Who may link it.' 'cc_library()'
write code/run '#!/bin/sh' '# Of it.' '# shellcheck disable=SC1' 'true' '# shellcheck What'
write code/data '# What is no script.'
expect_list code/ "code/BUILD:1: Who may link it." "code/b.py:2: What it does  Another line." \
  "code/run:2: Of it." "code: 600 per 1,000 (3 of 5)"

# Each sentence counts in Markdown, without headings and code, and in protos.
write page.md '# What it is' '' 'The chief waits. What it waits for' 'is a slot. Of [the slot](what.md) it knows.' \
  '* One that is open.' '* **The next slot is open.** Of the others none is.' '' '```' 'What is code here.' '```' \
  '| What there is | the name of a slot |' '|---|---|' '| `Those` of the run | no |'
expect_list page.md "page.md:3: What it waits for is a slot." "page.md:3: Of the slot it knows." \
  "page.md:5: One that is open." "page.md:6: Of the others none is." 'page.md:11: What there is' \
  'page.md:13: `Those` of the run' "page.md: 667 per 1,000 (6 of 9)"
write proto/a.proto '// The lease of a slot. What it has' '// is a time.' 'int32 x = 1;  // Of it.'
expect_list proto/a.proto "proto/a.proto:1: What it has is a time." "proto: 500 per 1,000 (1 of 2)"

# Numbers: 3 bad comments out of 10 are 300, and a fourth would make 400.
(cd "${TREE}" && rm -r all code page.md proto)
expect_ten() { # BAD: writes ten comments, BAD of which count
  local -a lines=()
  for ((i = 0; i < 10; i++)); do
    if ((i < $1)); then lines+=("// What it is." ""); else lines+=("// Returns it." ""); fi
  done
  write code/a.cc "${lines[@]}"
}
expect_ten 3
expect_failure "code: 300, but english.txt has no number"
check --update
expect_number "code 300"
check || fail "the count is the number"
expect_ten 4
expect_failure "code: 400, above its number 300"
expect_failure "code: 400, above its number 300" --update
expect_number "code 300"
expect_ten 2
check || fail "less than two comments below the number"
expect_ten 1
expect_failure "code: 100, below its number 300"
check --update
expect_number "code 100"
check || fail "the number was lowered"

# Names of tests.
longest="$(printf 'A%.0s' {1..45})"
write code/a_test.cc "TEST_F(FolderTest, ${longest}) {"
check || fail "a name of 45 characters is allowed"
write code/a_test.cc "TEST_F(FolderTest, ${longest}A) {"
expect_failure "code/a_test.cc:1:TEST_F(FolderTest, ${longest}A) {"
rm "${TREE}/code/a_test.cc"

rm "${TREE}/code/a.cc"
expect_failure "code: in english.txt, but it has no text"
