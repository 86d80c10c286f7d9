#include "lockstep/server/chief/run/run_directory.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

config::v1::RunSpec Config() {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} } }
    input { batch_size: 64 }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { steps: 1000 replicas_to_aggregate: 2 seed: 7 }
  )",
                                                            &config));
  return config;
}

TEST(RunDirectoryTest, EveryLifeHasAGenerationOfItsOwn) {
  MemoryFileSystem fs;
  for (int64_t generation = 1; generation <= 3; ++generation) {
    const auto directory = RunDirectory::Open(&fs, "new/logdir");
    ASSERT_TRUE(directory.ok()) << directory.status();
    EXPECT_EQ((*directory)->generation(), generation);
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
  EXPECT_EQ(RunDirectory::Open(&fs, "d").value()->generation(), 2) << "the one that was refused had none";
}

TEST(RunDirectoryTest, WhoLooksWhetherItIsHeldIsInNobodysWay) {
  FileSystem* const fs = FileSystem::Real();
  const std::string path = JoinPath(::testing::TempDir(), absl::StrCat("run_directory_test-", getpid()));
  std::atomic<bool> ending{false};
  std::thread other([&] {
    while (!ending.load()) RunDirectory::IsHeld(fs, path);
  });
  for (int i = 1; i <= 100; ++i) {
    const auto directory = RunDirectory::Open(fs, path);
    EXPECT_TRUE(directory.ok()) << directory.status();
    EXPECT_TRUE(RunDirectory::IsHeld(fs, path));
  }
  ending.store(true);
  other.join();
}

TEST(RunDirectoryTest, ContinuesAnEarlierVersionsCount) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("d").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs, "d/epoch", "6\n").ok());
  EXPECT_EQ(RunDirectory::Open(&fs, "d").value()->generation(), 7);
  EXPECT_EQ(RunDirectory::Open(&fs, "d").value()->generation(), 8);
}

TEST(RunDirectoryTest, ADamagedGenerationFileIsNamed) {
  for (const char* text : {"", "soon", "-3", "99999999999999999999", "9223372036854775807"}) {
    MemoryFileSystem fs;
    ASSERT_TRUE(fs.CreateDirectory("d").ok());
    ASSERT_TRUE(WriteFileAtomically(&fs, "d/generation", text).ok());
    const auto status = RunDirectory::Open(&fs, "d").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("d/generation"));
  }
}

TEST(RunDirectoryTest, AFullDiskIsReported) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  { ASSERT_TRUE(RunDirectory::Open(&fs, "d").ok()); }
  fs.FillDiskAfter(0);
  EXPECT_TRUE(absl::IsResourceExhausted(RunDirectory::Open(&fs, "d").status()));
  fs.Heal();
  EXPECT_EQ(RunDirectory::Open(&fs, "d").value()->generation(), 2);
}

TEST(RunDirectoryTest, NoticesThatAnotherChiefHasTakenOver) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  const auto first = RunDirectory::Open(&fs, "d").value();
  EXPECT_TRUE(first->CheckOwned().ok());
  // An administrator mistakes the lock for that of a dead process.
  ASSERT_TRUE(memory.Remove("d/lock").ok());
  EXPECT_TRUE(first->CheckOwned().ok()) << "no other chief holds it";
  const auto second = RunDirectory::Open(&fs, "d").value();
  EXPECT_TRUE(absl::IsFailedPrecondition(first->CheckOwned())) << first->CheckOwned();
  EXPECT_TRUE(second->CheckOwned().ok());
  fs.FailMatching(FaultyFileSystem::Operation::kOpen, "d/generation", absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(second->CheckOwned())) << "the owner is unknown";
}

// The successor has replaced the lock but has not entered its generation yet.
TEST(RunDirectoryTest, NoticesThatItsLockWasReplaced) {
  MemoryFileSystem fs;
  const auto directory = RunDirectory::Open(&fs, "d").value();
  ASSERT_TRUE(fs.Remove("d/lock").ok());
  const auto lock = fs.LockFile("d/lock").value();
  EXPECT_TRUE(absl::IsFailedPrecondition(directory->CheckOwned())) << directory->CheckOwned();
}

// A network file system has lost its locks, but the lock file is unchanged.
TEST(RunDirectoryTest, NoticesAnotherGeneration) {
  MemoryFileSystem fs;
  const auto first = RunDirectory::Open(&fs, "d").value();
  ASSERT_TRUE(WriteFileAtomically(&fs, "d/generation", "2\n").ok());
  EXPECT_EQ(first->CheckOwned().message(),
            "another chief has taken over d: it has entered generation 2, the generation here is 1");
  ASSERT_TRUE(fs.Remove("d/generation").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(first->CheckOwned()));
}

// The successor has removed this generation's folder but has not written its own generation yet.
TEST(RunDirectoryTest, NoticesThatItIsFenced) {
  MemoryFileSystem fs;
  const auto directory = RunDirectory::Open(&fs, "d").value();
  const auto successor = FencedFiles::Create(&fs, "d", 1).value();
  ASSERT_TRUE(successor->FenceEarlier().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(directory->CheckOwned())) << directory->CheckOwned();
  EXPECT_TRUE(absl::IsFailedPrecondition(directory->WriteRecord(v1::RunRecord())));
  EXPECT_FALSE(fs.Exists("d/lockstep.textproto").value());
}

// A chief was killed after it created its generation's folder but before it wrote the generation file.
TEST(RunDirectoryTest, SkipsAGenerationThatWasBegun) {
  MemoryFileSystem fs;
  { ASSERT_TRUE(RunDirectory::Open(&fs, "d").ok()); }
  ASSERT_TRUE(fs.CreateDirectory("d/generation.2").ok());
  const auto directory = RunDirectory::Open(&fs, "d").value();
  EXPECT_EQ(directory->generation(), 3);
  EXPECT_FALSE(fs.Exists("d/generation.2").value());
}

TEST(RunDirectoryTest, ReplacesASilentChief) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  const auto frozen = RunDirectory::Open(&memory, "d").value();
  EXPECT_TRUE(frozen->Beat().ok());
  fs.FillDiskAfter(0);
  EXPECT_TRUE(absl::IsResourceExhausted(RunDirectory::Open(&fs, "d", 1).status()));
  EXPECT_TRUE(frozen->CheckOwned().ok()) << "a full disk does not cost the run its chief";
  fs.Heal();
  const auto standby = RunDirectory::Open(&fs, "d", 1).value();
  EXPECT_EQ(standby->generation(), 2);
  EXPECT_TRUE(standby->CheckOwned().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(frozen->CheckOwned()));
  EXPECT_TRUE(absl::IsFailedPrecondition(frozen->Beat()));
  EXPECT_TRUE(absl::IsFailedPrecondition(RunDirectory::Open(&fs, "d").status())) << "the lock is the standby's";
}

// Two standbys find that the same chief is silent.
TEST(RunDirectoryTest, OneOfTwoStandbysTakesOver) {
  MemoryFileSystem fs;
  const auto frozen = RunDirectory::Open(&fs, "d").value();
  const auto first = RunDirectory::Open(&fs, "d", 1).value();
  const auto second = RunDirectory::Open(&fs, "d", 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_EQ(ExitCodeOf(second), kExitRetryable);
  EXPECT_TRUE(first->CheckOwned().ok());
}

TEST(RunDirectoryTest, AKilledStandbyIsNoRival) {
  MemoryFileSystem fs;
  const auto frozen = RunDirectory::Open(&fs, "d").value();
  ASSERT_TRUE(fs.CreateDirectory("d/generation.2").ok());
  const auto standby = RunDirectory::Open(&fs, "d", 1).value();
  EXPECT_EQ(standby->generation(), 3);
  EXPECT_FALSE(fs.Exists("d/generation.2").value());
}

// An unreadable file must not make the chief restart at generation 1 or accept a different configuration.
TEST(RunDirectoryTest, AnErrorOfTheDiskIsNotANewRun) {
  MemoryFileSystem memory;
  FaultyFileSystem fs(&memory);
  { ASSERT_TRUE(RunDirectory::Open(&fs, "d").value()->WriteRecord(v1::RunRecord()).ok()); }
  const absl::Status error = absl::InternalError("Input/output error");
  using Operation = FaultyFileSystem::Operation;
  for (const Operation operation : {Operation::kExists, Operation::kOpen, Operation::kRead}) {
    fs.FailMatching(operation, "d/generation", error);
    auto directory = RunDirectory::Open(&fs, "d");
    EXPECT_TRUE(directory.ok() ? (*directory)->generation() > 1 : directory.status().code() == error.code());
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
  v1::RunRecord record;
  *record.mutable_config() = Config();
  ApplyDefaults(record.mutable_config());
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
  const std::pair<std::function<void(config::v1::RunSpec*)>, std::string> cases[] = {
      {[](config::v1::RunSpec* c) { c->mutable_training()->set_seed(8); }, "training.seed: 7 -> 8"},
      {[](config::v1::RunSpec* c) { c->mutable_training()->set_replicas_to_aggregate(3); },
       "training.replicas_to_aggregate: 2 -> 3"},
      {[](config::v1::RunSpec* c) { c->mutable_input()->set_batch_size(32); }, "input.batch_size: 64 -> 32"},
      {[](config::v1::RunSpec* c) { c->mutable_model()->mutable_layer(0)->mutable_dense()->set_units(11); },
       "model.layer[0].dense.units: 10 -> 11"},
      {[](config::v1::RunSpec* c) { c->mutable_optimizer()->mutable_learning_rate()->set_initial(0.2f); },
       "optimizer.learning_rate.initial"},
      {[](config::v1::RunSpec* c) { c->mutable_optimizer()->mutable_adam(); }, "optimizer"},
      {[](config::v1::RunSpec* c) { c->mutable_compression()->set_gradients(config::v1::CompressionConfig::BFLOAT16); },
       "compression"},
      {[](config::v1::RunSpec* c) { c->mutable_compression()->set_values(config::v1::CompressionConfig::FLOAT16); },
       "compression"},
      {[](config::v1::RunSpec* c) { c->mutable_compression()->mutable_top_k()->set_fraction(0.1); }, "compression"},
  };
  for (const auto& test : cases) {
    config::v1::RunSpec other = Config();
    test.first(&other);
    const absl::Status status = CheckSameRun(Config(), other);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << test.second;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.second));
  }
}

TEST(RunDirectoryTest, AnOptimizersStatesStayTheSame) {
  config::v1::RunSpec plain = Config(), centered = Config();
  plain.mutable_optimizer()->mutable_rmsprop();
  centered.mutable_optimizer()->mutable_rmsprop()->set_centered(true);
  config::v1::RunSpec slower = plain;
  slower.mutable_optimizer()->mutable_rmsprop()->set_decay(0.5f);
  EXPECT_TRUE(CheckMayChange(plain, slower).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckMayChange(plain, centered)));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckMayChange(centered, plain)));
  const auto refusal = [](const std::string& before, const std::string& after) {
    config::v1::RunSpec old_spec = Config(), new_spec = Config();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(before, old_spec.mutable_optimizer()));
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(after, new_spec.mutable_optimizer()));
    return CheckMayChange(old_spec, new_spec);
  };
  const std::string rate = "learning_rate { initial: 0.1 } ";
  EXPECT_TRUE(refusal(rate + "adam {}", rate + "adam { beta1: 0.8 }").ok());
  for (const char* const other :
       {"momentum { momentum: 0.9 }", "adam { amsgrad: true }", "adam {} moving_average { decay: 0.9 }",
        "adam {} group { variables: 'bias$' optimizer { sgd {} } }"}) {
    const absl::Status status = refusal(rate + "adam {}", rate + other);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << other;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a run with another optimizer: optimizer")) << other;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot change; use another logdir")) << other;
  }
}

TEST(RunDirectoryTest, HowARunIsCarriedOutMayChange) {
  config::v1::RunSpec other = Config();
  other.mutable_training()->set_steps(5000);
  other.mutable_training()->set_startup_delay_steps(3);
  other.mutable_checkpoint()->set_every_steps(10);
  other.mutable_summary()->set_every_steps(1);
  other.mutable_evaluation()->set_split("test");
  other.mutable_cluster()->set_lease_seconds(1);
  other.mutable_compression()->set_values(config::v1::CompressionConfig::FLOAT32);
  EXPECT_TRUE(CheckSameRun(Config(), other).ok());
}

}  // namespace
}  // namespace lockstep
