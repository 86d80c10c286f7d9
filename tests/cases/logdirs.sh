#!/usr/bin/env bash
# Situations from public bug reports that concern a run's logdir: names, files that others leave there, steps, and a
# logdir that is deleted.
# Usage: logdirs.sh LOCKSTEP MOVE_CHECKPOINT.py
set -uo pipefail
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../fault/expectations.sh"
LOCKSTEP="$(readlink -f "$1")"
MOVE_CHECKPOINT="$(readlink -f "$2")"
readonly LOCKSTEP MOVE_CHECKPOINT CONFIG="${WORK}/run.textproto"
cat >"${CONFIG}" <<'CONFIG'
model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
input {
  split { name: "train" synthetic { kind: CLASSIFICATION examples: 600 shape: 8 classes: 3 } }
  split { name: "test" synthetic { kind: CLASSIFICATION examples: 100 shape: 8 classes: 3 stream: 1 } }
  batch_size: 4
}
optimizer { momentum {} learning_rate { initial: 0.05 exponential { decay_steps: 1000000000 decay_rate: 0.5 } } }
training { steps: 20 replicas_to_aggregate: 2 seed: 1 }
CONFIG
cd "${WORK}" || exit

# train WHAT LOGDIR STEPS TEXT: trains up to STEPS, and expects success and the text.
train() {
  "${LOCKSTEP}" local "${CONFIG}" --steps="$3" --logdir="$2" >log 2>&1 || expect "the exit code, $1" 0 $?
  expect_said "$1" "$4" log
}
digest() { "${LOCKSTEP}" inspect --digest "$1" 2>&1; }
# refuses WHAT TEXT COMMAND...: expects exit code 2 and the text.
refuses() {
  "${LOCKSTEP}" "${@:3}" >log 2>&1
  expect "the exit code, $1" 2 $?
  expect_said "$1" "$2" log
}

train "a run" plain 20 "finished at step 20"
twenty="$(digest plain)"

# k_checkpoint_file_names
for name in model.ckpt-20 model.ckpt-20.index model.ckpt-20.data-00000-of-00001; do
  expect "the digest of ${name}" "${twenty}" "$(digest "plain/${name}")"
done
for name in checkpoint 20 model.ckpt model.ckpt-21; do
  refuses "inspect ${name}" "the directory has plain/model.ckpt-0, plain/model.ckpt-20" inspect "plain/${name}"
  refuses "eval ${name}" "the directory has plain/model.ckpt-0, plain/model.ckpt-20" \
    eval --logdir=plain --checkpoint="plain/${name}"
done

# k_stray_files
cp -r plain stray
rm stray/checkpoint
for suffix in index data-00000-of-00001; do
  for name in model.ckpt-20_backup "model.ckpt-20 (1)" model.ckpt-99999999999999999999; do
    cp "plain/model.ckpt-20.${suffix}" "stray/${name}.${suffix}"
  done
done
touch stray/model.ckpt-20.index~
expect "the digest among other files" "${twenty}" "$(digest stray)"

# resume_beyond
train "the same run again" plain 20 "finished at step 20 already; to continue: --steps=MORE"
train "fewer steps" plain 10 "finished at step 20 already; to continue: --steps=MORE"
train "more steps" plain 30 "resuming from step 20"
thirty="$(digest plain)"
train "more steps, among other files" stray 30 "finished at step 30"
expect "the digest of 30 steps, among other files" "${thirty}" "$(digest stray)"

# k_odd_paths
for name in a//b lr=0.1,x=2 "with blank" "run[1]" "star*" läuf "quote's"; do
  train "the logdir ${name}" "odd/${name}" 20 "finished at step 20"
  train "the logdir ${name}, resumed" "odd/${name}" 30 "resuming from step 20"
  expect "the digest of the logdir ${name}" "${thirty}" "$(digest "odd/${name}")"
  "${LOCKSTEP}" eval --logdir="odd/${name}" >log 2>&1
  expect_said "eval of the logdir ${name}" "step 30  test: 100 examples" log
done
mkdir "data[1]"
{ echo a,y && for i in {1..20}; do echo "${i},$((i % 2))"; done; } >"data[1]/d.csv"
cat >csv.textproto <<'CONFIG'
model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
input {
  split { name: "train" csv { file: "data[1]/d.csv" column { name: "a" } column { name: "y" type: LABEL } } }
  batch_size: 2
}
optimizer { sgd {} learning_rate { initial: 0.001 } }
training { steps: 5 seed: 1 }
CONFIG
"${LOCKSTEP}" check csv.textproto >log 2>&1 || expect "data in a folder with brackets" 0 $?

# k_huge_step: beyond 2^24, 2^31, 2^32 and 2^53.
for step in 16777216 2147483640 4294967290 9007199254740990; do
  rm -rf huge
  train "a run for step ${step}" huge 10 "finished at step 10"
  python3 "${MOVE_CHECKPOINT}" huge 10 "${step}"
  train "beyond step ${step}" huge $((step + 20)) "finished at step $((step + 20)) in"
  expect "the file of the last step beyond ${step}" "huge/model.ckpt-$((step + 20)).index" \
    "$(ls "huge/model.ckpt-$((step + 20)).index")"
done
rm -rf huge
train "a run for a step near 2^62" huge 10 "finished at step 10"
python3 "${MOVE_CHECKPOINT}" huge 10 4611686018427387900
"${LOCKSTEP}" local "${CONFIG}" --steps=4611686018427387920 --logdir=huge >log 2>&1
expect "the exit code for a step near 2^62" 1 $?
expect_said "a step near 2^62" "steps are in [0, 1152921504606846974]" log

# k_logdir_deleted
start deleted.log "${LOCKSTEP}" local "${CONFIG}" --steps=1000000000 --logdir=deleted --set=checkpoint.every_steps=1000
await "the run saves" 20 test -e deleted/checkpoint
rm -rf deleted || rm -rf deleted # the run may write at the same time
ends "a run without its logdir" 1 "${PID}"
expect_said "a run without its logdir" "deleted was emptied or taken away" deleted.log
expect "files in the logdir that was taken away" "" "$(ls deleted 2>/dev/null)"
((failures == 0))
