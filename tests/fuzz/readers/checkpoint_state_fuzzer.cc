#include "glog/logging.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Writing the parsed state and reading it back must return the same state.
bool RunState(absl::string_view input) {
  MemoryFileSystem fs;
  CHECK(fs.CreateDirectory("d").ok());
  PutFile(&fs, "d/checkpoint", input);
  const auto state = ReadCheckpointState(&fs, "d");
  if (!state.ok()) {
    CHECK(absl::IsInvalidArgument(state.status())) << state.status();
    return false;
  }
  const std::string newest = (*state)->model_checkpoint_path();
  StepOfCheckpoint(newest);
  CHECK(LatestCheckpoint(&fs, "d").ok());
  const auto& all = (*state)->all_model_checkpoint_paths();
  CHECK(WriteCheckpointState(&fs, "d", newest, {all.begin(), all.end()}).ok());
  const auto again = ReadCheckpointState(&fs, "d");
  CHECK(again.ok()) << again.status();
  CHECK_EQ((*again)->model_checkpoint_path(), newest);
  return true;
}

bool RunRecord(absl::string_view input) {
  MemoryFileSystem fs;
  CHECK(fs.CreateDirectory("d").ok());
  PutFile(&fs, JoinPath("d", kRunRecordFile), input);
  const auto record = ReadRunRecord(&fs, "d");
  if (!record.ok()) {
    CHECK(absl::IsInvalidArgument(record.status())) << record.status();
    return false;
  }
  CHECK(WriteRunRecord(&fs, "d", **record).ok());
  const auto again = ReadRunRecord(&fs, "d");
  CHECK(again.ok()) << again.status();
  return true;
}

std::vector<std::string> StateSeeds() {
  return {
      "model_checkpoint_path: \"model.ckpt-200\"\nall_model_checkpoint_paths: \"model.ckpt-100\"\n"
      "all_model_checkpoint_paths: \"/elsewhere/model.ckpt-200\"\n",
      "model_checkpoint_path: 'a' # edited\n"};
}

std::vector<std::string> RecordSeeds() {
  return {
      "config { input { batch_size: 8 } optimizer { sgd {} } training { steps: 10 } }\n"
      "model { variables { name: \"w\" dtype: DT_FLOAT shape: 3 trainable: true initializer { zeros {} } } }\n"};
}

const FuzzTarget kState({"checkpoint_state", 256 << 10, 300, RunState, StateSeeds});
// Parsing the first text in a process creates the configuration's descriptors, which take 278 kB.
const FuzzTarget kRecord({"run_record", 512 << 10, 2000, RunRecord, RecordSeeds});

}  // namespace
}  // namespace lockstep
