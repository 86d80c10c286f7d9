#include "server/chief/chief.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/simulated_clock.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/checkpoint/digest.h"
#include "common/config/defaults.h"
#include "common/io/faulty_file_system.h"
#include "common/io/hanging_file_system.h"
#include "common/io/memory_file_system.h"
#include "common/io/record_io.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/chief/run_directory.h"
#include "server/chief/testing/frame_worker.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChiefTest : public ::testing::Test {
 protected:
  ChiefTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      input { batch_size: 8 }
      optimizer { adam {} learning_rate { initial: 0.1 } }
      training { steps: 10 replicas_to_aggregate: 2 seed: 7 }
      checkpoint { every_seconds: 0 }
      summary { every_steps: 2 }
      cluster { lease_seconds: 2 }
    )",
                                                              &config_));
    ApplyDefaults(&config_);
  }

  absl::Status Start() {
    Chief::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.logdir = logdir_;
    options.config = config_;
    options.housekeeping_period = absl::ZeroDuration();
    last_session_ = 0;
    options.draw_session_id = draw_session_id_;
    auto chief = Chief::Create(std::move(options));
    if (!chief.ok()) return chief.status();
    chief_ = *std::move(chief);
    return absl::OkStatus();
  }
  // As kill -9 and another start.
  absl::Status Restart() {
    worker_.reset();
    chief_.reset();
    return Start();
  }

  absl::StatusOr<OpenSessionReply> OpenSession(const std::string& worker, const ModelSpec& model = FrameModel(),
                                               uint64_t incarnation = 1) {
    OpenSessionRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    *request.mutable_model() = model;
    if (data_) *request.mutable_data() = *data_;
    return chief_->OpenSession(request);
  }
  std::unique_ptr<FrameWorker> Connect(uint64_t session) {
    return std::make_unique<FrameWorker>(session, chief_->epoch(), [&](std::shared_ptr<StepListener> listener) {
      return chief_->OpenStep(session, chief_->epoch(), ValuePath::kStreamed, std::move(listener)).value();
    });
  }
  // With one worker, whose stream stays open, until the global step is `step`.
  void TrainTo(int64_t step) {
    if (worker_ == nullptr) {
      worker_ = Connect(OpenSession("worker-0")->session_id());
      ASSERT_TRUE(worker_->Ask().ok());
    }
    while (chief_->GetStatus().global_step() < step) ASSERT_TRUE(worker_->Push().ok());
  }
  void TrainAndSave(int64_t step) {
    TrainTo(step);
    ASSERT_TRUE(chief_->Save().ok());
  }
  // Chief::Wait beside a worker that says goodbye when it is told.
  absl::Status WaitForEnd() {
    absl::Status status;
    std::thread waiter([&] { status = chief_->Wait(); });
    while (worker_ != nullptr && !worker_->finished()) {
      worker_->Drain();
      std::this_thread::yield();
    }
    worker_.reset();
    waiter.join();
    return status;
  }
  std::vector<std::string> Files() { return memory_.ListDirectory("logdir").value(); }
  std::string Digest(const std::string& prefix) {
    return CheckpointDigest(*BundleReader::Open(&memory_, prefix).value()).value();
  }
  // "START 3", "CHECKPOINT 4 logdir/model.ckpt-4", "loss 4", ... of the n-th event file, in order.
  std::vector<std::string> Events(size_t n) {
    std::vector<std::string> files;
    for (const std::string& name : Files()) {
      if (absl::StartsWith(name, "events.out.tfevents.")) files.push_back(JoinPath("logdir", name));
    }
    std::vector<std::string> events;
    if (n >= files.size()) return events;
    const auto reader = RecordReader::Open(&memory_, files[n]).value();
    for (uint64_t offset = 0; offset < reader->size();) {
      std::string payload;
      offset = reader->ReadAt(offset, &payload).value().next;
      Event event;
      EXPECT_TRUE(event.ParseFromString(payload));
      if (event.has_session_log()) {
        events.push_back(absl::StrCat(SessionLog::SessionStatus_Name(event.session_log().status()), " ", event.step()));
      }
      for (const auto& value : event.summary().value()) events.push_back(absl::StrCat(value.tag(), " ", event.step()));
    }
    return events;
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  HangingFileSystem hanging_{&memory_};
  FaultyFileSystem fs_{&hanging_};
  std::string logdir_ = "logdir";
  RunConfig config_;
  // Of each life of the chief: 1, 2, ...
  uint64_t last_session_ = 0;
  std::function<uint64_t()> draw_session_id_ = [this] { return ++last_session_; };
  // What workers read.
  absl::optional<DataDigest> data_;
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<FrameWorker> worker_;
};

TEST_F(ChiefTest, AFirstStartWaitsForAModelAndSavesAtOnce) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(chief_->GetRun().epoch(), 1);
  EXPECT_EQ(chief_->GetRun().config().training().seed(), 7u);
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::WAITING_FOR_MODEL);
  EXPECT_THAT(chief_->GetStatus().message(), HasSubstr("waiting for a worker"));
  chief_->Housekeep();
  const auto session = OpenSession("worker-0");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->global_step(), 0);
  EXPECT_EQ(session->epoch(), 1);
  EXPECT_EQ(session->piece_elements(), 65536u);
  EXPECT_EQ(session->lease_seconds(), 2);
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::TRAINING);
  ASSERT_TRUE(chief_->Save().ok());
  EXPECT_EQ(chief_->GetStatus().checkpoint(), "logdir/model.ckpt-0");
}

TEST_F(ChiefTest, ASessionIsNamedByWorkerAndIncarnation) {
  ASSERT_TRUE(Start().ok());
  const uint64_t first = OpenSession("a")->session_id();
  EXPECT_EQ(OpenSession("a")->session_id(), first);
  EXPECT_NE(OpenSession("a", FrameModel(), 2)->session_id(), first);
  EXPECT_NE(OpenSession("b")->session_id(), first);
}

TEST_F(ChiefTest, ASessionCannotBeGuessed) {
  draw_session_id_ = Chief::Options().draw_session_id;
  ASSERT_TRUE(Start().ok());
  uint64_t first = 0, varies = 0;
  for (uint64_t incarnation = 0; incarnation < 64; ++incarnation) {
    const uint64_t id = OpenSession("a", FrameModel(), incarnation)->session_id();
    if (incarnation == 0) first = id;
    varies |= id ^ first;
  }
  EXPECT_EQ(varies, ~uint64_t{0}) << "every bit is drawn";
  worker_ = Connect(first);
  ASSERT_TRUE(worker_->Ask().ok());
  ASSERT_EQ(chief_->GetStatus().worker_size(), 1);
  EXPECT_EQ(chief_->GetStatus().worker(0).session_id(), first & 0xffff) << "not all of it is shown";
}

TEST_F(ChiefTest, EverySessionHasAnIdOfItsOwn) {
  std::vector<uint64_t> draws = {9, 7, 7, 0, 7};
  draw_session_id_ = [&draws] {
    const uint64_t id = draws.back();
    draws.pop_back();
    return id;
  };
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(OpenSession("a")->session_id(), 7u);
  EXPECT_EQ(OpenSession("b")->session_id(), 9u);
}

TEST_F(ChiefTest, AnotherModelIsRefusedWithTheFirstDifference) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  ModelSpec other = FrameModel();
  other.mutable_variables(2)->set_shape(0, 65541);
  const auto status = OpenSession("b", other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("variables[2].shape[0]: 65540 -> 65541"));
}

DataDigest Data(int64_t examples, uint32_t crc32c) {
  DataDigest data;
  data.set_examples(examples);
  data.set_crc32c(crc32c);
  return data;
}

TEST_F(ChiefTest, OtherDataAreRefusedWithBothDigests) {
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  EXPECT_TRUE(OpenSession("b").ok());
  for (const DataDigest& other : {Data(101, 0xabc), Data(100, 0xdef)}) {
    data_ = other;
    const auto status = OpenSession("c@host").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("c@host reads ", other.examples(), " examples with CRC32C 00000",
                                       absl::Hex(other.crc32c()), ", the run 100 examples with CRC32C 00000abc")));
  }
  data_.reset();
  EXPECT_THAT(std::string(OpenSession("d").status().message()), HasSubstr("d reads none, the run 100 examples"));
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::TRAINING);
}

TEST_F(ChiefTest, ARunWithoutDataRefusesThem) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  EXPECT_TRUE(OpenSession("b").ok());
  for (const bool restarted : {false, true}) {
    if (restarted) {
      data_.reset();
      ASSERT_TRUE(Restart().ok());
    }
    data_ = Data(1, 2);
    const auto status = OpenSession("c").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("c reads 1 examples with CRC32C 00000002, the run none"));
  }
}

TEST_F(ChiefTest, ARestartedChiefKnowsTheRunsData) {
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  ASSERT_TRUE(Restart().ok());
  data_ = Data(100, 0xdef);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("a").status()));
  data_ = Data(100, 0xabc);
  EXPECT_TRUE(OpenSession("a").ok());
}

TEST_F(ChiefTest, TheRecordOfAnOlderVersionTakesTheFirstWorkersData) {
  config_.mutable_input()->add_split()->set_name("train");
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  RunRecord record;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(*ReadFile(&memory_, "logdir/lockstep.textproto"), &record));
  EXPECT_EQ(record.data().examples(), 100);
  EXPECT_EQ(record.data().crc32c(), 0xabcu);
  record.clear_data();
  std::string text;
  google::protobuf::TextFormat::PrintToString(record, &text);
  ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/lockstep.textproto", text).ok());
  ASSERT_TRUE(Start().ok());

  // Whose model is another has no say, and what cannot be written down does not count.
  ModelSpec other = FrameModel();
  other.mutable_variables(2)->set_shape(0, 65541);
  data_ = Data(1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("a", other).status()));
  fs_.FailMatching(FaultyFileSystem::Operation::kRename, "lockstep.textproto",
                   absl::ResourceExhaustedError("the disk is full"));
  EXPECT_TRUE(absl::IsResourceExhausted(OpenSession("a").status()));
  fs_.Heal();
  data_ = Data(100, 0xdef);
  ASSERT_TRUE(OpenSession("a").ok());
  data_ = Data(100, 0xabc);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("b").status()));
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("b").status()));
  data_ = Data(100, 0xdef);
  EXPECT_TRUE(OpenSession("b").ok());
}

TEST_F(ChiefTest, AWrongFirstModelLeavesTheRunToTheNextWorker) {
  ASSERT_TRUE(Start().ok());
  ModelSpec wrong = FrameModel();
  wrong.mutable_variables(0)->set_shape(0, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenSession("a", wrong).status()));
  wrong.mutable_variables(0)->set_shape(0, int64_t{1} << 36);
  EXPECT_TRUE(absl::IsResourceExhausted(OpenSession("a", wrong).status()));
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::WAITING_FOR_MODEL);
  EXPECT_TRUE(OpenSession("b").ok());
}

TEST_F(ChiefTest, AModelThatTheControlGroupCannotHoldIsRefusedWithBothNumbers) {
  // Enough for two versions of variables and optimizer state, not for the third while one is saved.
  for (const std::string directory : {"/proc/self", "/sys/fs/cgroup/run"}) {
    ASSERT_TRUE(memory_.CreateDirectory(directory).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(&memory_, "/proc/self/cgroup", "0::/run\n").ok());
  ASSERT_TRUE(WriteFileAtomically(&memory_, "/sys/fs/cgroup/run/memory.max", "2000000\n").ok());
  ASSERT_TRUE(Start().ok());
  const absl::Status status = OpenSession("a").status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::ContainsRegex("need 2[0-9]{6} bytes of memory, "
                                                                      "/sys/fs/cgroup/run/memory.max has 2000000"));
  logdir_.clear();
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(OpenSession("a").ok());
}

TEST_F(ChiefTest, AStartThatFailedInTheMiddleIsMadeAnew) {
  ASSERT_TRUE(Start().ok());
  const int64_t before = fs_.operations();
  ASSERT_TRUE(OpenSession("a").ok());
  ASSERT_TRUE(chief_->Save().ok());
  const int64_t operations = fs_.operations() - before;
  for (int64_t n = 1; n <= operations; ++n) {
    logdir_ = absl::StrCat("logdir-", n);
    chief_.reset();
    ASSERT_TRUE(Start().ok());
    fs_.FailOperation(n, absl::ResourceExhaustedError("the disk is full"));
    const auto first = OpenSession("a");
    fs_.Heal();
    const auto second = OpenSession("a");
    ASSERT_TRUE(second.ok()) << "operation " << n << ": " << second.status();
    EXPECT_TRUE(first.ok() || absl::IsResourceExhausted(first.status())) << first.status();
    ASSERT_TRUE(chief_->Save().ok()) << "operation " << n;
    EXPECT_EQ(chief_->GetStatus().checkpoint(), logdir_ + "/model.ckpt-0");
  }
}

TEST_F(ChiefTest, TrainsToTheEndAndSaysGoodbye) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(0);
  TrainTo(10);
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::FINISHED);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-10"));
  const auto events = Events(0);
  EXPECT_EQ(events.front(), "START 0");
  EXPECT_EQ(events.back(), "STOP 0");
  for (const char* event : {"CHECKPOINT 0", "CHECKPOINT 10", "loss 2", "loss 10"}) {
    EXPECT_THAT(events, ::testing::Contains(event));
  }
  EXPECT_THAT(events, ::testing::Not(::testing::Contains("loss 3")));
}

TEST_F(ChiefTest, TheEndDoesNotWaitLongForAWorkerThatSaysNothing) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(10);  // so that Wait waits for nothing but the worker
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->Wait(); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(2));
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
}

// SM-06, ERR-06
TEST_F(ChiefTest, ARestartedChiefResumesAtItsCheckpointInANewEpoch) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(6);
  clock_.Advance(absl::Seconds(10));
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->epoch(), 2);
  const RunStatus status = chief_->GetStatus();
  EXPECT_EQ(status.global_step(), 4);
  EXPECT_EQ(status.phase(), RunStatus::TRAINING) << "no worker needs to come first";
  EXPECT_EQ(status.checkpoint(), "logdir/model.ckpt-4");
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(Events(1).front(), "START 4");
  const std::string resumed = Digest("logdir/model.ckpt-10");

  logdir_ = "other";
  ASSERT_TRUE(Restart().ok());
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(Digest("other/model.ckpt-10"), resumed);
}

// ERR-01
TEST_F(ChiefTest, CallsOfAnOlderEpochAreAborted) {
  ASSERT_TRUE(Start().ok());
  const uint64_t session = OpenSession("a")->session_id();
  ASSERT_TRUE(Restart().ok());
  HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session);
  heartbeat.set_epoch(1);
  const auto status = chief_->Heartbeat(heartbeat).status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("of epoch 1 is unknown; the chief's epoch is 2"));
  EXPECT_TRUE(absl::IsAborted(chief_->OpenStep(session, 1, ValuePath::kStreamed, nullptr).status()));
  heartbeat.set_epoch(2);
  EXPECT_TRUE(absl::IsAborted(chief_->Heartbeat(heartbeat).status())) << "the session is of the life before";
}

// ERR-05
TEST_F(ChiefTest, AWorkerThatWasKilledAndStartedAgainGoesOnAtThePresentStep) {
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  worker_.reset();
  const auto session = OpenSession("worker-0", FrameModel(), /*incarnation=*/2);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->global_step(), 3);
  worker_ = Connect(session->session_id());
  ASSERT_TRUE(worker_->Ask().ok());
  EXPECT_EQ(worker_->token()->step(), 3);
  EXPECT_EQ(worker_->values_step(), 3);
}

TEST_F(ChiefTest, ASecondChiefOnTheLogdirIsRefused) {
  ASSERT_TRUE(Start().ok());
  Chief::Options options;
  options.fs = &fs_;
  options.clock = &clock_;
  options.logdir = "logdir";
  options.config = config_;
  const auto status = Chief::Create(std::move(options)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(chief_->epoch(), 1);
}

TEST_F(ChiefTest, AnotherConfigurationIsRefusedByTheDifferingField) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  config_.mutable_training()->set_seed(8);
  const absl::Status status = Restart();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("training.seed: 7 -> 8"));
  config_.mutable_training()->set_seed(7);
  config_.mutable_training()->set_steps(12);
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(chief_->GetStatus().total_steps(), 12);
  EXPECT_EQ(chief_->GetStatus().global_step(), 2);
}

TEST_F(ChiefTest, ADamagedNewestCheckpointIsPassedOver) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainAndSave(4);
  memory_.FlipBits("logdir/model.ckpt-4.data-00000-of-00001", 100, 1);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 2);
  EXPECT_EQ(chief_->GetStatus().checkpoint(), "logdir/model.ckpt-2");
}

// SM-20
TEST_F(ChiefTest, CheckpointsThatAreGoneAreNotReplacedByAFreshStart) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  worker_.reset();
  chief_.reset();
  for (const std::string& name : Files()) {
    if (absl::StartsWith(name, "model.ckpt-")) {
      ASSERT_TRUE(memory_.Remove(JoinPath("logdir", name)).ok());
    }
  }
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("logdir/model.ckpt-4"));
}

// SM-22
TEST_F(ChiefTest, ARestartedChiefGoesOnWithTheListOfCheckpoints) {
  config_.mutable_checkpoint()->set_keep(3);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainAndSave(4);
  ASSERT_TRUE(Restart().ok());
  TrainAndSave(6);
  const auto list = [this] {
    const auto state = ReadCheckpointState(&memory_, "logdir").value().value();
    return std::vector<std::string>(state.all_model_checkpoint_paths().begin(),
                                    state.all_model_checkpoint_paths().end());
  };
  EXPECT_THAT(list(), ElementsAre("logdir/model.ckpt-2", "logdir/model.ckpt-4", "logdir/model.ckpt-6"));
  TrainAndSave(8);
  EXPECT_THAT(list(), ElementsAre("logdir/model.ckpt-4", "logdir/model.ckpt-6", "logdir/model.ckpt-8"));
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-2.index").value());
}

TEST_F(ChiefTest, SavesByTheClock) {
  config_.mutable_checkpoint()->set_every_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  clock_.Advance(absl::Seconds(29));
  chief_->Housekeep();
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-3.index").value());
  clock_.Advance(absl::Seconds(1));
  chief_->Housekeep();
  TrainAndSave(5);  // waits for the saver
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-3.index").value() ||
              memory_.Exists("logdir/model.ckpt-5.index").value());
  clock_.Advance(absl::Seconds(30));
  const int64_t before = fs_.operations();
  chief_->Housekeep();
  EXPECT_EQ(fs_.operations(), before) << "step 5 is saved already";
}

TEST_F(ChiefTest, ALossThatIsNotFiniteEndsTheRunAndHarmsNoCheckpoint) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(5);
  StepFrame frame = worker_->NewFrame(*worker_->token());
  worker_->AddReports(&frame);
  frame.reports[1].set_loss(std::numeric_limits<float>::quiet_NaN());
  worker_->AddAllPieces(&frame);
  frame.end = true;
  ASSERT_TRUE(worker_->Send(frame).ok());
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::FAILED);
  EXPECT_THAT(chief_->GetStatus().message(), HasSubstr("the loss of step 5 is not finite"));
  HeartbeatRequest heartbeat;
  heartbeat.set_session_id(1);
  heartbeat.set_epoch(1);
  EXPECT_TRUE(chief_->Heartbeat(heartbeat)->finished());
  const absl::Status status = WaitForEnd();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-4"));
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 4);
}

TEST_F(ChiefTest, AFinalSaveThatFailsIsAnErrorAndTheLastCheckpointStays) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  fs_.FillDiskAfter(1000);
  TrainTo(10);
  const absl::Status status = WaitForEnd();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the last step could not be saved"));
  fs_.Heal();
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 4);
}

TEST_F(ChiefTest, AFinishedRunEndsAtOnceWhenAWorkerWasTold) {
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().phase(), RunStatus::FINISHED);
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->Wait(); });
  const uint64_t session = OpenSession("late")->session_id();
  worker_ = Connect(session);
  ASSERT_TRUE(worker_->Ask().ok());
  while (!worker_->finished()) {
    worker_->Drain();
    std::this_thread::yield();
  }
  worker_.reset();
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-10"));
}

TEST_F(ChiefTest, AFinishedRunThatNobodyAsksForEndsSoon) {
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  config_.mutable_training()->set_steps(8);
  ASSERT_TRUE(Restart().ok());
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->Wait(); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(2));
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-8.index").value());
}

TEST_F(ChiefTest, AWorkerThatStartsAfterTheEndIsToldWhileTheChiefLingers) {
  config_.mutable_cluster()->set_linger_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  absl::Status status = absl::UnknownError("still waiting");
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    status = chief_->Wait();
    ended = true;
  });
  while (!worker_->finished()) worker_->Drain();
  worker_.reset();
  const absl::Time begin = clock_.Now();
  while (!ended) {
    const auto late = OpenSession(absl::StrCat("late at ", absl::FormatTime(clock_.Now())));
    ASSERT_TRUE(late.ok()) << late.status();
    const auto worker = Connect(late->session_id());
    ASSERT_TRUE(worker->Ask().ok());
    EXPECT_TRUE(worker->finished());
    EXPECT_EQ(worker->finish_message(), "");
    EXPECT_TRUE(worker->Leave().ok());
    clock_.Advance(absl::Seconds(1));
  }
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(clock_.Now() - begin, absl::Seconds(30));
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-10.index").value());
}

TEST_F(ChiefTest, AStopEndsTheLingeringOfARunThatIsOver) {
  config_.mutable_cluster()->set_linger_seconds(1e6);
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->Wait(); });
  while (!worker_->finished()) worker_->Drain();
  worker_.reset();
  chief_->RequestStop();
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ChiefTest, AStopBeforeTheEndSavesTheStep) {
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  chief_->RequestStop();
  const absl::Status status = chief_->Wait();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(status.message(), "stopped at step 3, saved logdir/model.ckpt-3");
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-3"));
  EXPECT_EQ(Events(0).back(), "STOP 0");
  EXPECT_TRUE(absl::IsUnavailable(OpenSession("late").status()));
  EXPECT_TRUE(absl::IsUnavailable(chief_->OpenStep(1, 1, ValuePath::kStreamed, nullptr).status()));
}

TEST_F(ChiefTest, AStopBeforeTheModelIsKnownSavesNothing) {
  ASSERT_TRUE(Start().ok());
  chief_->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->Wait()));
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), absl::nullopt);
}

TEST_F(ChiefTest, AStopThrowsAStepAwayThatIsHalfApplied) {
  for (const bool worker_left : {true, false}) {
    logdir_ = absl::StrCat("logdir-", worker_left);
    worker_.reset();
    ASSERT_TRUE(Restart().ok());
    TrainTo(3);
    StepFrame frame = worker_->NewFrame(*worker_->token());
    worker_->AddReports(&frame);
    worker_->AddPiece(0, 0, 3, &frame);
    ASSERT_TRUE(worker_->Send(frame).ok());
    const Token token = *worker_->token();
    if (!worker_left) worker_.reset();
    chief_->RequestStop();
    EXPECT_TRUE(absl::IsCancelled(chief_->Wait()));
    const std::string saved = logdir_ + "/model.ckpt-3";
    EXPECT_EQ(LatestCheckpoint(&memory_, logdir_).value(), saved);
    if (worker_left) {
      StepFrame rest = worker_->NewFrame(token);
      worker_->AddPiece(2, 0, 65540, &rest);
      rest.end = true;
      EXPECT_TRUE(worker_->Send(rest).ok());
      EXPECT_EQ(chief_->GetStatus().global_step(), 3) << "what comes late is not taken, or it would be lost";
    }
    ASSERT_TRUE(Restart().ok());
    TrainTo(10);
    ASSERT_TRUE(WaitForEnd().ok());
    EXPECT_EQ(Digest(logdir_ + "/model.ckpt-10"), Digest("logdir-1/model.ckpt-10"));
  }
  logdir_ = "undisturbed";
  ASSERT_TRUE(Restart().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(Digest("undisturbed/model.ckpt-10"), Digest("logdir-1/model.ckpt-10"));
}

TEST_F(ChiefTest, AStopGivesADiskThatHangsItsTime) {
  config_.mutable_checkpoint()->set_stop_seconds(7);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainTo(3);
  hanging_.Hang("model.ckpt-3");
  chief_->RequestStop();
  absl::Status status;
  std::thread waiter([&] { status = chief_->Wait(); });
  hanging_.AwaitHanging();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(7));
  waiter.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(), "stopped at step 3, which is not saved: the disk has not taken step 3 within 7s");
  hanging_.Release();
}

TEST_F(ChiefTest, AStopWhoseSaveFailsSaysSo) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainTo(3);
  fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-3", absl::PermissionDeniedError("read-only"));
  chief_->RequestStop();
  const absl::Status status = chief_->Wait();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stopped at step 3, which is not saved: "));
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-2"));
}

TEST_F(ChiefTest, AStopTriesAgainWhatMayPass) {
  for (const bool passes : {true, false}) {
    // The time below goes on whatever the saver's thread does.
    config_.mutable_checkpoint()->set_stop_seconds(passes ? 1e9 : 30);
    logdir_ = absl::StrCat("logdir-", passes);
    worker_.reset();
    ASSERT_TRUE(Restart().ok());
    TrainAndSave(2);
    TrainTo(3);
    fs_.FillDiskAfter(1000);
    chief_->RequestStop();
    absl::Status status;
    std::atomic<bool> stopped{false};
    std::thread waiter([&] {
      status = chief_->Wait();
      stopped = true;
    });
    const absl::Time began = clock_.Now();
    while (!stopped) {
      if (passes && clock_.Now() - began > absl::Seconds(5)) fs_.Heal();
      clock_.Advance(absl::Milliseconds(1));
      std::this_thread::yield();
    }
    waiter.join();
    fs_.Heal();
    EXPECT_EQ(absl::IsCancelled(status), passes) << status;
    EXPECT_EQ(absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status), !passes) << status;
    EXPECT_EQ(LatestCheckpoint(&memory_, logdir_).value(), logdir_ + (passes ? "/model.ckpt-3" : "/model.ckpt-2"));
  }
}

TEST_F(ChiefTest, AStopWhileTheEndIsBeingSavedIsBoundedToo) {
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-10");
  TrainTo(10);
  absl::Status status;
  std::thread waiter([&] { status = chief_->Wait(); });
  hanging_.AwaitHanging();
  chief_->RequestStop();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(config_.checkpoint().stop_seconds()));
  while (!worker_->finished()) {
    worker_->Drain();
    std::this_thread::yield();
  }
  worker_.reset();
  waiter.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the last step could not be saved"));
  hanging_.Release();
}

TEST_F(ChiefTest, SettingTheDateChangesNothing) {
  config_.mutable_checkpoint()->set_every_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  for (const absl::Duration jump : {-absl::Hours(24), absl::Hours(48), absl::Hours(8)}) {
    clock_.SetWallClock(jump);
    chief_->Housekeep();
    EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-3.index").value()) << "no timer has run out";
    ASSERT_TRUE(worker_->token().has_value());
    EXPECT_EQ(chief_->GetStatus().worker(0).slot_count(), 2) << "its lease goes on";
    clock_.Advance(absl::Seconds(1));
    HeartbeatRequest heartbeat;
    heartbeat.set_session_id(chief_->GetStatus().worker(0).session_id());
    heartbeat.set_epoch(chief_->epoch());
    EXPECT_TRUE(chief_->Heartbeat(heartbeat).ok());
  }
  clock_.Advance(absl::Seconds(27));
  chief_->Housekeep();
  while (chief_->GetStatus().checkpoint() != "logdir/model.ckpt-3") std::this_thread::yield();
}

// Its lock was removed as that of a dead process, or a network file system has forgotten it.
TEST_F(ChiefTest, EndsWhenAnotherChiefHasTakenOverItsLogdir) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(3);
  ASSERT_TRUE(memory_.Remove("logdir/lock").ok());
  const auto successor = RunDirectory::Open(&memory_, "logdir").value();
  ASSERT_TRUE(WriteCheckpointState(&memory_, "logdir", "logdir/model.ckpt-7", {}).ok());
  const std::vector<std::string> files = Files();
  TrainTo(5);
  EXPECT_FALSE(chief_->Save().ok());
  const absl::Status status = chief_->Wait();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_FALSE(worker_->finished()) << "it looks for the successor";
  EXPECT_TRUE(absl::IsUnavailable(OpenSession("late").status()));
  worker_.reset();
  chief_.reset();
  EXPECT_EQ(Files(), files);
  EXPECT_EQ(ReadCheckpointState(&memory_, "logdir").value()->model_checkpoint_path(), "logdir/model.ckpt-7");
}

TEST_F(ChiefTest, GoesOnWhenItCannotSeeWhetherItsLogdirIsItsOwn) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(3);
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "logdir/epoch", absl::InternalError("Input/output error"));
  TrainTo(5);
  EXPECT_TRUE(absl::IsInternal(chief_->Save()));
  fs_.Heal();
  TrainAndSave(6);
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
}

TEST_F(ChiefTest, AnEventFileThatHangsHoldsNobodyUp) {
  ASSERT_TRUE(Start().ok());
  const uint64_t session = OpenSession("worker-0")->session_id();
  worker_ = Connect(session);
  ASSERT_TRUE(worker_->Ask().ok());
  ASSERT_TRUE(chief_->Save().ok());
  hanging_.Hang("tfevents");
  TrainTo(4);
  hanging_.AwaitHanging();
  TrainTo(9);
  chief_->Housekeep();
  EXPECT_EQ(chief_->GetStatus().global_step(), 9);
  HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session);
  heartbeat.set_epoch(chief_->epoch());
  EXPECT_TRUE(chief_->Heartbeat(heartbeat).ok());
  EXPECT_TRUE(OpenSession("worker-0").ok());
  hanging_.Release();
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  const auto events = Events(0);
  for (const char* event : {"START 0", "CHECKPOINT 0", "loss 2", "loss 4", "loss 6", "loss 8", "loss 10"}) {
    EXPECT_THAT(events, ::testing::Contains(event));
  }
  EXPECT_EQ(events.back(), "STOP 0");
}

TEST_F(ChiefTest, AnEventFileThatHangsDelaysAStopByItsLimit) {
  config_.mutable_checkpoint()->set_stop_seconds(1e9);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  hanging_.Hang("tfevents");
  chief_->RequestStop();
  std::atomic<bool> stopped{false};
  std::thread stop([&] {
    EXPECT_TRUE(absl::IsCancelled(chief_->Wait()));
    stopped = true;
  });
  hanging_.AwaitHanging();
  while (chief_->GetStatus().checkpoint() != "logdir/model.ckpt-3") std::this_thread::yield();
  while (!stopped) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  stop.join();
  hanging_.Release();
}

TEST_F(ChiefTest, ACheckpointThatHangsHoldsNobodyUp) {
  config_.mutable_checkpoint()->set_every_steps(2);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  TrainTo(9);
  chief_->Housekeep();
  EXPECT_EQ(chief_->GetStatus().global_step(), 9);
  EXPECT_TRUE(OpenSession("worker-0").ok());
  hanging_.Release();
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-10"));
}

TEST_F(ChiefTest, SessionsWithoutAStreamExpire) {
  ASSERT_TRUE(Start().ok());
  const uint64_t silent = OpenSession("silent")->session_id();
  const uint64_t beating = OpenSession("beating")->session_id();
  TrainTo(1);
  HeartbeatRequest heartbeat;
  heartbeat.set_epoch(1);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Seconds(30));
    chief_->Housekeep();
    heartbeat.set_session_id(beating);
    EXPECT_TRUE(chief_->Heartbeat(heartbeat).ok());
  }
  EXPECT_TRUE(absl::IsAborted(chief_->OpenStep(silent, 1, ValuePath::kStreamed, nullptr).status()));
  EXPECT_TRUE(worker_->Push().ok()) << "a session with a stream stays";
  EXPECT_NE(OpenSession("silent")->session_id(), silent);
}

TEST_F(ChiefTest, AFloodOfSessionsDoesNotGrowForEver) {
  ASSERT_TRUE(Start().ok());
  TrainTo(1);
  const uint64_t first = OpenSession("flood", FrameModel(), 2)->session_id();
  uint64_t last = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    clock_.Advance(absl::Microseconds(1));
    last = OpenSession("flood", FrameModel(), 10 + i)->session_id();
  }
  HeartbeatRequest heartbeat;
  heartbeat.set_epoch(1);
  heartbeat.set_session_id(first);
  EXPECT_TRUE(absl::IsAborted(chief_->Heartbeat(heartbeat).status())) << "the one that was not used for longest went";
  heartbeat.set_session_id(last);
  EXPECT_TRUE(chief_->Heartbeat(heartbeat).ok());
  EXPECT_TRUE(worker_->Push().ok());
}

TEST_F(ChiefTest, AGiantNameIsRefused) {
  ASSERT_TRUE(Start().ok());
  const auto status = OpenSession(std::string(1 << 20, 'x')).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576 bytes; at most 256"));
}

// WARM-09
TEST_F(ChiefTest, AWarmStartTakesTheVariablesOfAnotherRun) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  const float trained = worker_->value(0, 0);
  logdir_ = "warm";
  config_.mutable_checkpoint()->set_warm_start("logdir/model.ckpt-4");
  config_.mutable_training()->set_seed(9);
  ASSERT_TRUE(Restart().ok());
  TrainTo(0);
  EXPECT_EQ(worker_->values_step(), 0);
  EXPECT_EQ(worker_->value(0, 0), trained);
  config_.mutable_checkpoint()->set_warm_start("logdir/absent");
  logdir_ = "cold";
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(absl::IsNotFound(OpenSession("a").status()));
}

TEST_F(ChiefTest, WorksWithoutALogdir) {
  logdir_ = "";
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  chief_->Housekeep();
  EXPECT_TRUE(chief_->Save().ok());
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(memory_.ListDirectory("/").value().empty());
}

}  // namespace
}  // namespace lockstep
