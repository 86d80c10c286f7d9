#include "server/chief/run_directory.h"

#include <functional>
#include <string>

#include "common/io/faulty_file_system.h"
#include "common/io/memory_file_system.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

RunConfig Config() {
  RunConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} } }
    input { batch_size: 64 }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { steps: 1000 replicas_to_aggregate: 2 seed: 7 }
  )",
                                                            &config));
  return config;
}

TEST(RunDirectoryTest, EveryLifeHasAnEpochOfItsOwn) {
  MemoryFileSystem fs;
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    const auto directory = RunDirectory::Open(&fs, "new/logdir");
    ASSERT_TRUE(directory.ok()) << directory.status();
    EXPECT_EQ((*directory)->epoch(), epoch);
    EXPECT_EQ((*directory)->path(), "new/logdir");
    fs.DropUnsyncedData();
  }
}

TEST(RunDirectoryTest, OneChiefAtATime) {
  MemoryFileSystem fs;
  auto first = RunDirectory::Open(&fs, "d").value();
  const auto second = RunDirectory::Open(&fs, "d");
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another chief is running in d"));
  EXPECT_TRUE(RunDirectory::IsHeld(&fs, "d"));
  first.reset();
  EXPECT_FALSE(RunDirectory::IsHeld(&fs, "d"));
  EXPECT_FALSE(RunDirectory::IsHeld(&fs, "no directory"));
  EXPECT_EQ(RunDirectory::Open(&fs, "d").value()->epoch(), 2) << "the one that was refused had none";
}

TEST(RunDirectoryTest, ADamagedEpochFileIsNamed) {
  for (const char* text : {"", "soon", "-3", "99999999999999999999", "9223372036854775807"}) {
    MemoryFileSystem fs;
    ASSERT_TRUE(fs.CreateDirectory("d").ok());
    ASSERT_TRUE(WriteFileAtomically(&fs, "d/epoch", text).ok());
    const auto status = RunDirectory::Open(&fs, "d").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("d/epoch"));
  }
}

TEST(RunDirectoryTest, AFullDiskIsReported) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  { ASSERT_TRUE(RunDirectory::Open(&fs, "d").ok()); }
  fs.FillDiskAfter(0);
  EXPECT_TRUE(absl::IsResourceExhausted(RunDirectory::Open(&fs, "d").status()));
  fs.Heal();
  EXPECT_EQ(RunDirectory::Open(&fs, "d").value()->epoch(), 2);
}

TEST(RunDirectoryTest, NoticesThatAnotherChiefHasTakenOver) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  const auto first = RunDirectory::Open(&fs, "d").value();
  EXPECT_TRUE(first->CheckOwned().ok());
  // Somebody takes the lock for that of a dead process.
  ASSERT_TRUE(memory.Remove("d/lock").ok());
  EXPECT_TRUE(first->CheckOwned().ok()) << "nobody has taken it";
  const auto second = RunDirectory::Open(&fs, "d").value();
  EXPECT_TRUE(absl::IsFailedPrecondition(first->CheckOwned())) << first->CheckOwned();
  EXPECT_TRUE(second->CheckOwned().ok());
  fs.FailMatching(FaultyFileSystem::Operation::kOpen, "d/epoch", absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(second->CheckOwned())) << "nobody knows";
}

// As when a network file system has lost its locks, and the lock is the same file.
TEST(RunDirectoryTest, NoticesAnotherEpoch) {
  MemoryFileSystem fs;
  const auto first = RunDirectory::Open(&fs, "d").value();
  ASSERT_TRUE(WriteFileAtomically(&fs, "d/epoch", "2\n").ok());
  EXPECT_EQ(first->CheckOwned().message(),
            "another chief has taken over d: it has entered epoch 2, the epoch here is 1");
  ASSERT_TRUE(fs.Remove("d/epoch").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(first->CheckOwned()));
}

// Epoch 1 again, or another configuration accepted, because nothing could be read.
TEST(RunDirectoryTest, AnErrorOfTheDiskIsNotANewRun) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  { ASSERT_TRUE(RunDirectory::Open(&fs, "d").value()->WriteRecord(RunRecord()).ok()); }
  const absl::Status error = absl::InternalError("Input/output error");
  using Operation = FaultyFileSystem::Operation;
  for (const Operation operation : {Operation::kExists, Operation::kOpen, Operation::kRead}) {
    fs.FailMatching(operation, "d/epoch", error);
    auto directory = RunDirectory::Open(&fs, "d");
    EXPECT_TRUE(directory.ok() ? (*directory)->epoch() > 1 : directory.status().code() == error.code());
    fs.Heal();
    if (!directory.ok()) directory = RunDirectory::Open(&fs, "d");
    ASSERT_TRUE(directory.ok()) << directory.status();
    fs.FailMatching(operation, "d/lockstep.textproto", error);
    const auto record = (*directory)->ReadRecord();
    EXPECT_TRUE(record.ok() ? record->has_value() : record.status().code() == error.code());
    fs.Heal();
  }
}

TEST(RunDirectoryTest, KeepsTheRecordOfTheRun) {
  MemoryFileSystem fs;
  const auto directory = RunDirectory::Open(&fs, "d").value();
  EXPECT_FALSE(directory->ReadRecord().value().has_value());
  RunRecord record;
  *record.mutable_config() = Config();
  record.mutable_model()->add_variables()->set_name("w");
  ASSERT_TRUE(directory->WriteRecord(record).ok());
  fs.DropUnsyncedData();
  const auto read = directory->ReadRecord().value();
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*read, record));
  ASSERT_TRUE(WriteFileAtomically(&fs, "d/lockstep.textproto", "config { training { stepz: 3 } }").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(directory->ReadRecord().status()));
}

TEST(RunDirectoryTest, WhatChangesTheWeightsMakesAnotherRun) {
  const std::pair<std::function<void(RunConfig*)>, std::string> cases[] = {
      {[](RunConfig* c) { c->mutable_training()->set_seed(8); }, "training.seed: 7 -> 8"},
      {[](RunConfig* c) { c->mutable_training()->set_replicas_to_aggregate(3); },
       "training.replicas_to_aggregate: 2 -> 3"},
      {[](RunConfig* c) { c->mutable_input()->set_batch_size(32); }, "input.batch_size: 64 -> 32"},
      {[](RunConfig* c) { c->mutable_model()->mutable_layer(0)->mutable_dense()->set_units(11); },
       "model.layer[0].dense.units: 10 -> 11"},
      {[](RunConfig* c) { c->mutable_optimizer()->mutable_learning_rate()->set_initial(0.2f); },
       "optimizer.learning_rate.initial"},
      {[](RunConfig* c) { c->mutable_optimizer()->mutable_adam(); }, "optimizer"},
      {[](RunConfig* c) { c->mutable_compression()->set_gradients(CompressionConfig::BFLOAT16); }, "compression"},
      {[](RunConfig* c) { c->mutable_compression()->set_values(CompressionConfig::FLOAT16); }, "compression"},
      {[](RunConfig* c) { c->mutable_compression()->mutable_top_k()->set_fraction(0.1); }, "compression"},
  };
  for (const auto& test : cases) {
    RunConfig other = Config();
    test.first(&other);
    const absl::Status status = CheckSameRun(Config(), other);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << test.second;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.second));
  }
}

TEST(RunDirectoryTest, HowARunIsCarriedOutMayChange) {
  RunConfig other = Config();
  other.mutable_training()->set_steps(5000);
  other.mutable_training()->set_startup_delay_steps(3);
  other.mutable_checkpoint()->set_every_steps(10);
  other.mutable_summary()->set_every_steps(1);
  other.mutable_evaluation()->set_split("test");
  other.mutable_cluster()->set_lease_seconds(1);
  other.mutable_compression()->set_values(CompressionConfig::FLOAT32);
  EXPECT_TRUE(CheckSameRun(Config(), other).ok());
}

}  // namespace
}  // namespace lockstep
