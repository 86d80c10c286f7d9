#include "lockstep/server/chief/checkpoint/restore.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/limited_threads.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/testing/decode_index_table.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/checkpoint/checkpoint_writer.h"

namespace lockstep {
namespace {

class RestoreTest : public ::testing::Test {
 protected:
  RestoreTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      input { batch_size: 8 }
      optimizer { momentum {} learning_rate { initial: 0.1 } }
      training { steps: 10 seed: 7 }
    )",
                                                              &options_.config));
    ApplyDefaults(&options_.config);
    options_.fs = &fs_;
    options_.logdir = "logs";
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "w" shape: 4 dtype: DT_FLOAT trainable: true initializer { normal { stddev: 1 } } }
    )",
                                                              &model_));
  }

  absl::StatusOr<RestoredVariables> Restore() { return RestoreOrInitialize(options_, model_); }
  void Save(const VariableStore& store) {
    EXPECT_TRUE(fs_.CreateDirectory(options_.logdir).ok());
    CheckpointWriter::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.checkpoints.directory = options_.logdir;
    RunEvents ignored;
    options.events = &ignored;
    const auto checkpoint_writer = CheckpointWriter::Create(std::move(options)).value();
    checkpoint_writer->Save(store.TakeSnapshot());
    EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  }
  static std::string Values(const VariableStore& store) {
    const auto values = store.values();
    return std::string(reinterpret_cast<const char*>(values->data()), values->size());
  }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
  RestoreOptions options_;
  v1::ModelSpec model_;
};

// The model fits into memory, but an additional version does not: training works, and only reads are refused.
TEST_F(RestoreTest, KnowsWhetherAVersionToBeReadFits) {
  const RestoredVariables unlimited = Restore().value();
  EXPECT_TRUE(unlimited.read_memory.ok()) << unlimited.read_memory;
  const uint64_t needed =
      unlimited.store->MemoryNeeded({/*saves=*/true, /*reads=*/true}) + VariableStore::kProcessBytes;
  for (const char* directory : {"/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup"}) {
    ASSERT_TRUE(fs_.CreateDirectory(directory).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/proc/self/cgroup", "0::/\n").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/sys/fs/cgroup/memory.max", absl::StrCat(needed, "\n")).ok());
  const RestoredVariables fits = Restore().value();
  EXPECT_TRUE(fits.read_memory.ok());
  EXPECT_EQ(fits.memory_needed, needed);
  EXPECT_EQ(fits.memory_limit, needed);
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/sys/fs/cgroup/memory.max", absl::StrCat(needed - 1, "\n")).ok());
  const auto limited = Restore();
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(limited->read_memory)) << limited->read_memory;
  EXPECT_LT(limited->memory_needed, limited->memory_limit);
}

TEST_F(RestoreTest, BroughtValuesNeedMemoryOfTheirOwn) {
  VariableStore::MemoryUse use;
  use.saves = true;
  const RestoredVariables restored = Restore().value();
  const uint64_t without = restored.store->MemoryNeeded(use);
  use.brought_values = true;
  const uint64_t needed = restored.store->MemoryNeeded(use) + VariableStore::kProcessBytes;
  EXPECT_EQ(needed - without - VariableStore::kProcessBytes, 64u) << "four floats, padded";
  for (const char* directory : {"/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup"}) {
    ASSERT_TRUE(fs_.CreateDirectory(directory).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/proc/self/cgroup", "0::/\n").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/sys/fs/cgroup/memory.max", absl::StrCat(needed, "\n")).ok());
  EXPECT_TRUE(CheckBroughtValuesFit(options_, model_).ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/sys/fs/cgroup/memory.max", absl::StrCat(needed - 1, "\n")).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(CheckBroughtValuesFit(options_, model_)));
  EXPECT_TRUE(Restore().ok()) << "without them, the model fits";
}

TEST_F(RestoreTest, ANewRunIsAFunctionOfItsSeed) {
  const RestoredVariables first = Restore().value();
  EXPECT_EQ(first.checkpoint, absl::nullopt);
  EXPECT_EQ(first.store->step(), 0);
  EXPECT_EQ(Values(*Restore()->store), Values(*first.store));
  options_.config.mutable_training()->set_seed(8);
  EXPECT_NE(Values(*Restore()->store), Values(*first.store));
}

TEST_F(RestoreTest, ARunResumesAtItsCheckpointWhateverTheSeed) {
  const RestoredVariables first = Restore().value();
  Save(*first.store);
  options_.config.mutable_training()->set_seed(8);
  const RestoredVariables resumed = Restore().value();
  EXPECT_EQ(resumed.checkpoint, "logs/model.ckpt-0");
  EXPECT_EQ(Values(*resumed.store), Values(*first.store));
}

// The checkpoint is read directly into the variables' memory.
TEST_F(RestoreTest, OfADamagedCheckpointNothingIsLeft) {
  const RestoredVariables first = Restore().value();
  Save(*first.store);
  const std::string values = Values(*first.store);
  ASSERT_TRUE(first.store
                  ->Assign({{"w", Tensor::FromValues<float>({4}, {1, 2, 3, 4})},
                            {"w/Momentum", Tensor::FromValues<float>({4}, {5, 6, 7, 8})}})
                  .ok());
  first.store->BeginUpdate();
  first.store->SkipUpdate();
  Save(*first.store);
  EXPECT_EQ(Restore()->checkpoint, "logs/model.ckpt-1");
  for (uint64_t byte = 0; byte < 40; ++byte) {
    fs_.FlipBits("logs/model.ckpt-1.data-00000-of-00001", byte, 1);
    const RestoredVariables resumed = Restore().value();
    EXPECT_EQ(resumed.checkpoint, "logs/model.ckpt-0") << byte;
    ASSERT_EQ(resumed.damaged.size(), 1u);
    EXPECT_EQ(resumed.damaged[0].first, "logs/model.ckpt-1");
    EXPECT_EQ(resumed.store->step(), 0);
    EXPECT_EQ(Values(*resumed.store), values);
    const auto snapshot = resumed.store->TakeSnapshot();
    EXPECT_EQ(snapshot.optimizer_state[0]->as<float>()[0], 0);
    fs_.FlipBits("logs/model.ckpt-1.data-00000-of-00001", byte, 1);
  }
}

TEST_F(RestoreTest, ReadsALargeCheckpointWithoutThreads) {
  model_.mutable_variables(0)->set_shape(0, 4 << 20);
  const RestoredVariables first = Restore().value();
  Save(*first.store);
  for (const int threads : {0, 1}) {
    LimitedThreads few(threads, "pool");
    options_.executor = &few;
    const auto resumed = Restore();
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->checkpoint, "logs/model.ckpt-0");
    EXPECT_TRUE(Values(*resumed->store) == Values(*first.store));
  }
}

TEST_F(RestoreTest, AStateOfFollowersThatIsNoneIsDamage) {
  const RestoredVariables first = Restore().value();
  Save(*first.store);
  const std::string index = "logs/model.ckpt-0.index";
  auto entries = DecodeIndexTable(ReadFile(&fs_, index).value()).value();
  // A string tensor: length, checksum of the lengths, bytes.
  v1::BundleEntryProto entry;
  const std::string data = "logs/model.ckpt-0.data-00000-of-00001";
  std::string file = ReadFile(&fs_, data).value();
  entry.set_dtype(v1::DT_STRING);
  entry.set_offset(static_cast<int64_t>(file.size()));
  const uint32_t lengths = MaskCrc32c(ExtendCrc32c(0, std::string(4, '\0')));
  std::string encoded(1, '\0');
  AppendLittleEndian<uint32_t>(&encoded, lengths);
  entry.set_size(static_cast<int64_t>(encoded.size()));
  entry.set_crc32c(MaskCrc32c(ExtendCrc32c(0, std::string(4, '\0') + encoded.substr(1))));
  entries[kSessionStateKey] = entry.SerializeAsString();
  ASSERT_TRUE(WriteFileAtomically(&fs_, data, file + encoded).ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, index, EncodeIndexTable(entries)).ok());
  const absl::Status status = Restore().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(), "checkpoint logs/model.ckpt-0: lockstep/session_state is no such state");
}

TEST_F(RestoreTest, WhatAUsersSaverWroteIsNeverTakenForTheRuns) {
  const RestoredVariables first = Restore().value();
  Save(*first.store);
  // A Saver's checkpoint in the run's logdir, with the run's base name and listed in the state file. It holds some of
  // the variables, at a later step.
  BundleWriterOptions mark;
  mark.written_by_saver = true;
  auto writer = BundleWriter::Create(&fs_, "logs/model.ckpt-5", mark).value();
  EXPECT_TRUE(writer->Add("w", v1::DT_FLOAT, {4}, std::string(16, '\0')).ok());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(WriteCheckpointState(&fs_, "logs", "logs/model.ckpt-5", {}).ok());
  const auto resumed = Restore();
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->checkpoint, "logs/model.ckpt-0");
  EXPECT_EQ(Values(*resumed->store), Values(*first.store));
  // A logdir with only a Saver's checkpoint has no run to resume, but the run must not silently start over.
  EXPECT_TRUE(RemoveCheckpoint(&fs_, "logs/model.ckpt-0").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Restore().status()));
}

TEST_F(RestoreTest, WithoutALogdirNoCheckpointIsLookedFor) {
  Save(*Restore()->store);
  options_.logdir.clear();
  EXPECT_EQ(Restore()->checkpoint, absl::nullopt);
}

TEST_F(RestoreTest, AWarmStartTakesWhatTheCheckpointHas) {
  const RestoredVariables other = Restore().value();
  Save(*other.store);
  options_.logdir = "warm";
  options_.config.mutable_training()->set_seed(8);
  options_.config.mutable_checkpoint()->set_warm_start("logs/model.ckpt-0");
  *model_.add_variables() = model_.variables(0);
  model_.mutable_variables(1)->set_name("x");
  const RestoredVariables warm = Restore().value();
  EXPECT_EQ(warm.checkpoint, absl::nullopt);
  EXPECT_EQ(warm.store->values()->data()[0], other.store->values()->data()[0]);
}

TEST_F(RestoreTest, AWarmStartFindsVariablesUnderOtherNames) {
  const RestoredVariables other = Restore().value();
  Save(*other.store);
  options_.logdir = "warm";
  options_.config.mutable_training()->set_seed(8);
  config::v1::CheckpointConfig* const checkpoint = options_.config.mutable_checkpoint();
  checkpoint->set_warm_start("logs/model.ckpt-0");
  auto* const rename = checkpoint->mutable_warm_start_variables()->add_rename();
  rename->set_variable("new");
  rename->set_key(model_.variables(0).name());
  model_.mutable_variables(0)->set_name("new");
  EXPECT_EQ(Values(*Restore()->store), Values(*other.store));
  checkpoint->mutable_warm_start_variables()->add_exclude("new");
  EXPECT_TRUE(absl::IsInvalidArgument(Restore().status()));
}

TEST_F(RestoreTest, RefusesAWarmStartWithoutTheVariables) {
  Save(*Restore()->store);
  options_.logdir = "warm";
  options_.config.mutable_checkpoint()->set_warm_start("logs/model.ckpt-0");
  model_.mutable_variables(0)->set_name("x");
  const absl::Status status = Restore().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(
      std::string(status.message()),
      "checkpoint.warm_start: logs/model.ckpt-0 has none of the model's variables that are to be loaded, x for one; "
      "it has global_step, w, w/Momentum");
}

}  // namespace
}  // namespace lockstep
