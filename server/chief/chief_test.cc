#include "lockstep/server/chief/chief.h"

#include <xmmintrin.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Starts what writes checkpoints over time only when it is told to.
class HeldSaves : public Executor {
 public:
  void Release() {
    MutexLock lock(&mutex_);
    released_ = true;
    changed_.SignalAll();
  }

 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    if (name != "paced saves") return Executor::Threads()->Start(std::move(name), std::move(body), priority);
    return Executor::Threads()->Start(std::move(name), [this, body = std::move(body)]() mutable {
      {
        MutexLock lock(&mutex_);
        while (!released_) changed_.Wait(&mutex_);
      }
      body();
    });
  }

  Mutex mutex_;
  CondVar changed_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

// A thread of the chief that gets no processor for a while: within a call of this listener.
class HeldListener : public StepListener {
 public:
  explicit HeldListener(std::shared_ptr<StepListener> to) : to_(std::move(to)) {}

  // The next call.
  void Hold() {
    MutexLock lock(&mutex_);
    state_ = State::kHolds;
  }
  void AwaitHeld() {
    MutexLock lock(&mutex_);
    while (state_ != State::kHeld) changed_.Wait(&mutex_);
  }
  void Release() {
    MutexLock lock(&mutex_);
    state_ = State::kOpen;
    changed_.SignalAll();
  }
  void OnReplyReady() override {
    {
      MutexLock lock(&mutex_);
      if (state_ == State::kHolds) {
        state_ = State::kHeld;
        changed_.SignalAll();
        while (state_ == State::kHeld) changed_.Wait(&mutex_);
      }
    }
    to_->OnReplyReady();
  }
  void OnResume() override { to_->OnResume(); }
  void OnClosed(const absl::Status& why, bool at_once) override { to_->OnClosed(why, at_once); }

 private:
  enum class State { kOpen, kHolds, kHeld };

  const std::shared_ptr<StepListener> to_;
  Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpen;
};

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
    options.write_events = write_events_;
    options.config = config_;
    options.followed = followed_;
    options.share_memory = share_memory_;
    options.machine.executor = executor_;
    options.housekeeping_period = absl::ZeroDuration();
    last_session_ = 0;
    options.machine.draw_session_id = draw_session_id_;
    options.on_accepted = [this] {
      ++accepted_;
      return absl::OkStatus();
    };
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

  // Of a worker that has computed the canary, unless `canary` is 0.
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const std::string& worker, const v1::ModelSpec& model = FrameModel(),
                                                   uint64_t incarnation = 1, uint64_t canary = 1) {
    v1::OpenSessionRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    *request.mutable_model() = model;
    if (data_) *request.mutable_data() = *data_;
    CompleteDeclaration(&request, canary);
    if (canary == 0) request.clear_canary_digest();
    return chief_->OpenSession(request);
  }
  static v1::SessionState HookState(int64_t step) {
    v1::SessionState state;
    state.set_step(step);
    v1::SessionState::Hook* const hook = state.add_hook();
    hook->set_name("count");
    hook->set_state(absl::StrCat(step));
    return state;
  }
  // The step of the hooks' state that a checkpoint would hold now; 0 if there is none.
  int64_t FollowersStep() {
    v1::SessionState state;
    EXPECT_TRUE(state.ParseFromString(chief_->training()->log()->Serialize()));
    return state.step();
  }
  v1::RunRecord Record() {
    v1::RunRecord record;
    const std::string text = ReadFile(&memory_, "logdir/lockstep.textproto").value();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &record));
    return record;
  }
  void WriteRecord(const v1::RunRecord& record) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(record, &text);
    ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/lockstep.textproto", text).ok());
  }
  std::unique_ptr<FrameWorker> Connect(uint64_t session) {
    return std::make_unique<FrameWorker>(session, chief_->generation(), [&](std::shared_ptr<StepListener> listener) {
      return chief_->OpenStep(session, chief_->generation(), ValuePath::kStreamed, std::move(listener)).value();
    });
  }
  // With one worker, whose stream stays open, until the global step is `step`.
  void TrainTo(int64_t step) {
    if (worker_ == nullptr) {
      worker_ = Connect(OpenSession("worker-0")->session_id());
      ASSERT_TRUE(worker_->Ask().ok());
    }
    while (chief_->GetStatus().global_step() < step) {
      // The disk may hold the step up.
      while (!worker_->token()) worker_->Drain();
      ASSERT_TRUE(worker_->Push().ok());
    }
  }
  void TrainAndSave(int64_t step) {
    TrainTo(step);
    ASSERT_TRUE(chief_->Save().ok());
  }
  // Chief::Wait with a worker that says goodbye when it is notified.
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
  bool HasCheckpoint(int64_t step) {
    return memory_.Exists(absl::StrCat("logdir/model.ckpt-", step, ".index")).value();
  }
  void AwaitCheckpoint(int64_t step) {
    while (chief_->GetStatus().checkpoint() != absl::StrCat("logdir/model.ckpt-", step)) std::this_thread::yield();
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
      v1::Event event;
      EXPECT_TRUE(event.ParseFromString(payload));
      if (event.has_session_log()) {
        events.push_back(
            absl::StrCat(v1::SessionLog::SessionStatus_Name(event.session_log().status()), " ", event.step()));
      }
      for (const auto& value : event.summary().value()) events.push_back(absl::StrCat(value.tag(), " ", event.step()));
    }
    return events;
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  HangingFileSystem hanging_{&memory_};
  FaultyFileSystem fs_{&hanging_};
  Executor* executor_ = Executor::Threads();
  std::string logdir_ = "logdir";
  bool write_events_ = true;
  bool followed_ = false;
  bool share_memory_ = false;
  config::v1::RunSpec config_;
  // Of each life of the chief: 1, 2, ...
  uint64_t last_session_ = 0;
  std::function<uint64_t()> draw_session_id_ = [this] { return ++last_session_; };
  // Lives of a chief that owned the run.
  int accepted_ = 0;
  // What workers read.
  absl::optional<v1::DataDigest> data_;
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<FrameWorker> worker_;
};

TEST_F(ChiefTest, IsNotMadeWhereFloatsWouldHaveOtherBits) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  const absl::Status status = Start();
  _mm_setcsr(mode);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("-ffast-math"));
  EXPECT_TRUE(Start().ok()) << "the logdir is free";
}

TEST_F(ChiefTest, AFirstStartWaitsForAModelAndSavesAtOnce) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(chief_->GetRunSpec().generation(), 1);
  EXPECT_EQ(chief_->GetRunSpec().spec().training().seed(), 7u);
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::WAITING_FOR_MODEL);
  EXPECT_THAT(chief_->GetStatus().message(), HasSubstr("waiting for a worker"));
  chief_->Housekeep();
  const auto session = OpenSession("worker-0");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->global_step(), 0);
  EXPECT_EQ(session->generation(), 1);
  EXPECT_EQ(session->piece_elements(), 65536u);
  EXPECT_EQ(session->lease_seconds(), 2);
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::TRAINING);
  ASSERT_TRUE(chief_->Save().ok());
  EXPECT_EQ(chief_->GetStatus().checkpoint(), "logdir/model.ckpt-0");
}

TEST_F(ChiefTest, TheFirstCheckpointIsWrittenHoweverSoonTheRunEnds) {
  HeldSaves saves;
  executor_ = &saves;
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  saves.Release();
  chief_.reset();
  EXPECT_THAT(Events(0), AllOf(Contains("CHECKPOINT 0"), Contains("CHECKPOINT 10")));
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-0.index").value());
}

TEST_F(ChiefTest, ASessionIsNamedByWorkerAndIncarnation) {
  ASSERT_TRUE(Start().ok());
  const uint64_t first = OpenSession("a")->session_id();
  EXPECT_EQ(OpenSession("a")->session_id(), first);
  EXPECT_NE(OpenSession("a", FrameModel(), 2)->session_id(), first);
  EXPECT_NE(OpenSession("b")->session_id(), first);
}

TEST_F(ChiefTest, ASessionCannotBeGuessed) {
  draw_session_id_ = Chief::Options().machine.draw_session_id;
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

TEST_F(ChiefTest, OffersItsMemoryWhenItIsToBeSharedAndValuesAreNotCompressed) {
  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(OpenSession("a")->has_shared_memory());
  share_memory_ = true;
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(chief_->shares_memory());
  EXPECT_TRUE(OpenSession("a")->has_shared_memory());
  chief_.reset();
  logdir_ = "another";
  config_.mutable_compression()->set_values(config::v1::CompressionConfig::BFLOAT16);
  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(OpenSession("a")->has_shared_memory());
}

TEST_F(ChiefTest, AnotherModelIsRefusedWithTheFirstDifference) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  v1::ModelSpec other = FrameModel();
  other.mutable_variables(2)->set_shape(0, 65541);
  const auto status = OpenSession("b", other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("variables[2].shape[0]: 65540 -> 65541"));
}

v1::DataDigest Data(int64_t examples, uint32_t crc32c) {
  v1::DataDigest data;
  data.set_examples(examples);
  data.set_crc32c(crc32c);
  return data;
}

TEST_F(ChiefTest, OtherDataAreRefusedWithBothDigests) {
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  EXPECT_TRUE(OpenSession("b").ok());
  for (const v1::DataDigest& other : {Data(101, 0xabc), Data(100, 0xdef)}) {
    data_ = other;
    const auto status = OpenSession("c@host").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("c@host reads ", other.examples(), " examples with CRC32C 00000",
                                       absl::Hex(other.crc32c()), ", the run 100 examples with CRC32C 00000abc")));
  }
  data_.reset();
  EXPECT_THAT(std::string(OpenSession("d").status().message()), HasSubstr("d reads none, the run 100 examples"));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::TRAINING);
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

TEST_F(ChiefTest, NamesItsBuildAndResumesARunOfAnother) {
  ASSERT_TRUE(Start().ok());
  const v1::BuildInfo build = chief_->GetStatus().build();
  EXPECT_FALSE(build.version().empty());
  EXPECT_GE(build.arithmetic_version(), 1);
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record = Record();
  EXPECT_EQ(record.build().SerializeAsString(), build.SerializeAsString());
  record.mutable_build()->set_version("0.0.1");
  WriteRecord(record);
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(OpenSession("a").ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 2);
}

TEST_F(ChiefTest, RefusesALogdirOfAnotherArithmeticAndNamesTheWayOut) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record = Record();
  record.mutable_build()->set_arithmetic_version(99);
  WriteRecord(record);
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("arithmetic version 99"), HasSubstr("warm_start: \"logdir/model.ckpt-2\"")));
  EXPECT_EQ(accepted_, 1) << "not a second time";
  record.clear_build();  // as a version wrote it that had none, which is the first arithmetic
  WriteRecord(record);
  const absl::Status first = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(first)) << first;
  EXPECT_THAT(std::string(first.message()), HasSubstr("arithmetic version 1, by Lockstep of an early version"));
}

TEST_F(ChiefTest, TheFirstCanaryHasAsManyDigestsAsTheModelHasResults) {
  ASSERT_TRUE(Start().ok());
  v1::OpenSessionRequest request;
  request.set_worker("a");
  *request.mutable_model() = FrameModel();
  CompleteDeclaration(&request);
  request.add_canary_digest(1);
  EXPECT_TRUE(absl::IsInvalidArgument(chief_->OpenSession(request).status()));
  request.mutable_canary_digest()->RemoveLast();
  EXPECT_TRUE(chief_->OpenSession(request).ok());
}

TEST_F(ChiefTest, ARunOfAnotherReleaseIsResumedHoweverOftenTheChiefStartsBeforeAWorkerComes) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  v1::RunRecord record = Record();
  record.mutable_build()->set_version("0.0.1");
  record.add_model_part()->set_name("what that release called it");
  record.set_declared_by("its worker");
  WriteRecord(record);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Restart().ok());
  const auto opened = OpenSession("a");
  EXPECT_TRUE(opened.ok()) << opened.status();
}

TEST_F(ChiefTest, AStreamIsForAWorkerThatHasComputedTheCanary) {
  ASSERT_TRUE(Start().ok());
  const auto session = OpenSession("a", FrameModel(), 1, /*canary=*/0).value();
  EXPECT_TRUE(session.canary_wanted());
  const auto open = [&] {
    return chief_->OpenStep(session.session_id(), chief_->generation(), ValuePath::kStreamed, nullptr).status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(open()));
  const auto checked = OpenSession("a").value();
  EXPECT_EQ(checked.session_id(), session.session_id());
  EXPECT_FALSE(checked.canary_wanted());
  EXPECT_FALSE(OpenSession("a", FrameModel(), 1, /*canary=*/0)->canary_wanted()) << "once for each session";
  Connect(session.session_id());
}

TEST_F(ChiefTest, OnlyACheckedSessionMayEndTheRun) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  const auto session = OpenSession("stranger", FrameModel(), 1, /*canary=*/0).value();
  v1::RequestEndRequest request;
  request.set_session_id(session.session_id());
  request.set_generation(session.generation());
  const absl::Status refused = chief_->RequestEnd(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  TrainTo(4);
  EXPECT_EQ(chief_->GetStatus().global_step(), 4) << "the run continues";
  ASSERT_TRUE(OpenSession("stranger").ok());
  EXPECT_TRUE(chief_->RequestEnd(request).ok());
}

TEST_F(ChiefTest, TheFirstCanaryIsTheRunsAlsoAfterARestart) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a", FrameModel(), 1, /*canary=*/0).ok());
  EXPECT_FALSE(Record().has_canary());
  ASSERT_TRUE(OpenSession("a", FrameModel(), 1, /*canary=*/5).ok());
  EXPECT_EQ(Record().canary().result(0).digest(), 5u);
  ASSERT_TRUE(Restart().ok());
  const absl::Status status = OpenSession("b", FrameModel(), 1, /*canary=*/6).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of b differs from that of a"));
  EXPECT_TRUE(OpenSession("b", FrameModel(), 2, /*canary=*/5).ok());
}

TEST_F(ChiefTest, GivesTheValuesOfTheCanaryPieceByPiece) {
  v1::ModelSpec model;
  v1::VariableSpec* const large = model.add_variables();
  large->set_name("large");
  large->set_dtype(v1::DT_FLOAT);
  large->add_shape(600000);
  large->set_trainable(true);
  ASSERT_TRUE(Start().ok());
  const auto session = OpenSession("a", model).value();
  v1::GetCanaryValuesRequest request;
  request.set_session_id(session.session_id());
  request.set_generation(session.generation());
  std::string values;
  int calls = 0;
  for (; values.size() < 600000 * sizeof(float); ++calls) {
    const auto reply = chief_->GetCanaryValues(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    for (const v1::TensorPiece& piece : reply->value()) {
      EXPECT_EQ(piece.offset() * sizeof(float), values.size());
      values += piece.content();
    }
    request.set_first_segment(request.first_segment() + reply->value_size());
  }
  EXPECT_EQ(calls, 3) << "1 MiB each";
  EXPECT_TRUE(absl::IsInvalidArgument(chief_->GetCanaryValues(request).status())) << "there is no further segment";
  request.set_session_id(request.session_id() + 1);
  EXPECT_TRUE(absl::IsAborted(chief_->GetCanaryValues(request).status()));
}

TEST_F(ChiefTest, VariablesAreReadAtOneStepAndTrainingGoesOn) {
  ASSERT_TRUE(Start().ok());
  v1::ReadVariablesRequest request;
  EXPECT_TRUE(absl::IsUnavailable(chief_->ReadVariables(request).status())) << "no model yet";
  TrainTo(3);
  request.add_name("big");
  request.add_name("big/Adam");
  request.add_name("big/Adam_1");
  request.add_name("w");
  request.add_name("global_step");
  const auto reply = chief_->ReadVariables(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->step(), 3);
  EXPECT_EQ(reply->read_id(), last_session_) << "drawn as a session's";
  EXPECT_EQ(reply->part_size(), 5);
  EXPECT_EQ(reply->part(4).content(), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(reply->next_position(), 0);
  TrainTo(10);
  request.Clear();
  const auto finished = chief_->ReadVariables(request);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->step(), 10) << "also when the run is over";
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(chief_->ReadVariables(request).ok());
}

TEST_F(ChiefTest, AReadThatIsNotContinuedIsForgotten) {
  v1::ModelSpec model;
  v1::VariableSpec* const large = model.add_variables();
  large->set_name("large");
  large->set_dtype(v1::DT_FLOAT);
  large->add_shape(600000);
  large->set_trainable(true);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a", model).ok());
  v1::ReadVariablesRequest request;
  request.add_name("large");
  const auto first = chief_->ReadVariables(request).value();
  EXPECT_NEAR(static_cast<double>(first.ByteSizeLong()), 1 << 20, 100);
  request.clear_name();
  request.set_read_id(first.read_id());
  request.set_position(first.next_position());
  ASSERT_TRUE(chief_->ReadVariables(request).ok());
  clock_.Advance(absl::Seconds(10));
  chief_->Housekeep();
  EXPECT_TRUE(absl::IsAborted(chief_->ReadVariables(request).status()));
}

TEST_F(ChiefTest, RefusesAWorkerOfAnotherWireVersion) {
  ASSERT_TRUE(Start().ok());
  v1::OpenSessionRequest request;
  request.set_worker("old");
  *request.mutable_model() = FrameModel();
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->OpenSession(request).status()));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::WAITING_FOR_MODEL) << "it declares nothing";
}

TEST_F(ChiefTest, TheRecordOfAnOlderVersionTakesTheFirstWorkersData) {
  config_.mutable_input()->add_split()->set_name("train");
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(*ReadFile(&memory_, "logdir/lockstep.textproto"), &record));
  EXPECT_EQ(record.data().examples(), 100);
  EXPECT_EQ(record.data().crc32c(), 0xabcu);
  record.clear_data();
  std::string text;
  google::protobuf::TextFormat::PrintToString(record, &text);
  ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/lockstep.textproto", text).ok());
  ASSERT_TRUE(Start().ok());

  // Whose model is another has no say, and what cannot be written down does not count.
  v1::ModelSpec other = FrameModel();
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

TEST_F(ChiefTest, ADeclarationAfterTheEndKeepsTheEndOnRecord) {
  config_.mutable_input()->add_split()->set_name("train");
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(Record().finished());
  v1::RunRecord record = Record();
  record.clear_data();
  WriteRecord(record);
  ASSERT_TRUE(Restart().ok());
  EXPECT_FALSE(Record().finished()) << "this life has its own end";
  std::thread time([&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(2));
  });
  EXPECT_TRUE(chief_->Wait().ok());
  time.join();
  EXPECT_TRUE(Record().finished());
  ASSERT_TRUE(OpenSession("late").ok());
  EXPECT_EQ(Record().data().examples(), 100);
  EXPECT_TRUE(Record().finished());
}

TEST_F(ChiefTest, AWrongFirstModelLeavesTheRunToTheNextWorker) {
  ASSERT_TRUE(Start().ok());
  v1::ModelSpec wrong = FrameModel();
  wrong.mutable_variables(0)->set_shape(0, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenSession("a", wrong).status()));
  wrong.mutable_variables(0)->set_shape(0, int64_t{1} << 36);
  EXPECT_TRUE(absl::IsResourceExhausted(OpenSession("a", wrong).status()));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::WAITING_FOR_MODEL);
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
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FINISHED);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-10"));
  const auto events = Events(0);
  EXPECT_EQ(events.front(), "START 0");
  EXPECT_EQ(events.back(), "STOP 0");
  for (const char* event : {"CHECKPOINT 0", "CHECKPOINT 10", "loss 2", "loss 10"}) {
    EXPECT_THAT(events, ::testing::Contains(event));
  }
  EXPECT_THAT(events, Not(Contains("loss 3")));
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
TEST_F(ChiefTest, ARestartedChiefResumesAtItsCheckpointInANewGeneration) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(6);
  clock_.Advance(absl::Seconds(10));
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->generation(), 2);
  const v1::RunStatus status = chief_->GetStatus();
  EXPECT_EQ(status.global_step(), 4);
  EXPECT_EQ(status.phase(), v1::RunStatus::TRAINING) << "no worker needs to come first";
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
TEST_F(ChiefTest, CallsOfAnOlderGenerationAreAborted) {
  ASSERT_TRUE(Start().ok());
  const uint64_t session = OpenSession("a")->session_id();
  ASSERT_TRUE(Restart().ok());
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session);
  heartbeat.set_generation(1);
  const auto status = chief_->Heartbeat(heartbeat).status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("of generation 1 is unknown; the chief's generation is 2"));
  EXPECT_TRUE(absl::IsAborted(chief_->OpenStep(session, 1, ValuePath::kStreamed, nullptr).status()));
  heartbeat.set_generation(2);
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
  options.on_accepted = [this] {
    ++accepted_;
    return absl::OkStatus();
  };
  const auto status = Chief::Create(std::move(options)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(accepted_, 1) << "only the first";
  EXPECT_EQ(chief_->generation(), 1);
}

TEST_F(ChiefTest, AnotherConfigurationIsRefusedByTheDifferingField) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  config_.mutable_training()->set_seed(8);
  const absl::Status status = Restart();
  EXPECT_EQ(accepted_, 1) << "not by the run of another configuration";
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
  write_events_ = false;  // The thread that writes them would be counted.
  config_.mutable_checkpoint()->set_every_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  clock_.Advance(absl::Seconds(29));
  chief_->Housekeep();
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-3.index").value());
  clock_.Advance(absl::Seconds(1));
  chief_->Housekeep();
  TrainAndSave(5);  // waits for the checkpoint writer
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-3.index").value() ||
              memory_.Exists("logdir/model.ckpt-5.index").value());
  clock_.Advance(absl::Seconds(30));
  const int64_t before = fs_.operations();
  chief_->Housekeep();
  EXPECT_EQ(fs_.operations(), before) << "step 5 is saved already";
}

TEST_F(ChiefTest, SavesOnRequestAndContinues) {
  ASSERT_TRUE(Start().ok());
  chief_->RequestSave();  // there is nothing to save yet
  chief_->Housekeep();
  TrainTo(3);
  AwaitCheckpoint(0);
  chief_->Housekeep();
  AwaitCheckpoint(3);
  chief_->RequestSave();  // step 3 is saved already
  chief_->Housekeep();
  TrainTo(5);
  chief_->RequestSave();
  chief_->Housekeep();
  AwaitCheckpoint(5);
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
}

TEST_F(ChiefTest, RequestsDuringASaveThatHangsAreOneSave) {
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-3");
  TrainTo(3);
  AwaitCheckpoint(0);
  chief_->RequestSave();
  chief_->Housekeep();
  hanging_.AwaitHanging();
  for (int64_t step = 4; step <= 8; ++step) {
    TrainTo(step);
    for (int i = 0; i < 100; ++i) chief_->RequestSave();
    chief_->Housekeep();
  }
  hanging_.Release();
  AwaitCheckpoint(8);
  for (int64_t step = 4; step <= 7; ++step) EXPECT_FALSE(HasCheckpoint(step)) << step;
  chief_->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->Wait()));
}

TEST_F(ChiefTest, ARequestedSaveDoesNotReplaceTheFirst) {
  HeldSaves saves;
  executor_ = &saves;
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  chief_->RequestSave();
  while (!HasCheckpoint(3)) {
    chief_->Housekeep();
    std::this_thread::yield();
  }
  EXPECT_TRUE(HasCheckpoint(0));
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  saves.Release();
  chief_.reset();
}

TEST_F(ChiefTest, ARequestedSaveReplacesNoneThatIsDue) {
  config_.mutable_checkpoint()->set_every_steps(2);
  config_.mutable_checkpoint()->set_keep(0);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  const auto request = [this] {
    chief_->RequestSave();
    chief_->Housekeep();
  };
  request();  // is being written
  TrainTo(3);
  request();
  TrainTo(4);
  request();  // 3 waits
  hanging_.Release();
  for (int64_t step = 5; step <= 10; ++step) {
    TrainTo(step);
    request();
  }
  EXPECT_TRUE(WaitForEnd().ok());
  for (int64_t step = 2; step <= 10; step += 2) EXPECT_TRUE(HasCheckpoint(step)) << step;
  EXPECT_TRUE(HasCheckpoint(3));
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
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FAILED);
  EXPECT_THAT(chief_->GetStatus().message(), HasSubstr("the loss of step 5 is not finite"));
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(1);
  heartbeat.set_generation(1);
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
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FINISHED);
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

TEST_F(ChiefTest, AnEndThatASlotAsksForIsOnRecordBeforeItsStepIsSaved) {
  config_.mutable_checkpoint()->set_every_steps(1);
  for (const bool recorded : {false, true}) {
    worker_.reset();
    ASSERT_TRUE(Restart().ok());
    TrainAndSave(2);
    while (!worker_->token()) worker_->Drain();  // the disk may hold it up
    StepFrame frame = worker_->NewFrame(*worker_->token());
    worker_->AddReports(&frame);
    frame.reports[0].set_stop(true);
    worker_->AddAllPieces(&frame);
    frame.end = true;
    if (!recorded)
      fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "lockstep.textproto", absl::InternalError(""));
    ASSERT_TRUE(worker_->Send(frame).ok());
    const absl::Status status = WaitForEnd();
    EXPECT_EQ(status.ok(), recorded) << status;
    // A life that begins at step 3 would not come to that slot again.
    EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), absl::StrCat("logdir/model.ckpt-", recorded ? 3 : 2));
    EXPECT_EQ(Record().has_end(), recorded);
    fs_.Heal();
  }
  EXPECT_EQ(Record().end().step(), 3);
}

TEST_F(ChiefTest, AnEndThatMayBeOnRecordIsKeptToAndTheCallerHearsThatNobodyKnows) {
  followed_ = true;
  for (const bool heals : {true, false}) {
    logdir_ = absl::StrCat("logdir-", heals);
    ASSERT_TRUE(Restart().ok());
    ASSERT_TRUE(OpenSession("worker-0").ok());
    chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
    TrainAndSave(2);
    EXPECT_EQ(FollowersStep(), 0);
    worker_.reset();
    // The record is replaced, and may be taken back.
    fs_.FailMatching(FaultyFileSystem::Operation::kSyncDirectory, logdir_, absl::InternalError("Input/output error"));
    const v1::SessionState last_state = HookState(2);
    const absl::Status told = chief_->End("enough", &last_state);
    EXPECT_TRUE(absl::IsUnknown(told)) << told;
    EXPECT_EQ(FollowersStep(), 2);
    EXPECT_EQ(chief_->GetStatus().total_steps(), 2) << "no step is computed that may be beyond the end";
    ASSERT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FINISHED);
    if (heals) fs_.Heal();
    const absl::Status ended = WaitForEnd();
    EXPECT_EQ(ended.ok(), heals) << "workers hear of an end that is on record alone: " << ended;
    chief_.reset();
    fs_.Heal();
    memory_.DropUnsyncedData();
    EXPECT_EQ(ReadRunRecord(&memory_, logdir_).value()->has_end(), heals);
    ASSERT_TRUE(Start().ok());
    EXPECT_EQ(chief_->GetStatus().global_step(), 2);
  }
}

TEST_F(ChiefTest, TheReasonOnRecordIsThatOfWhoAskedFirst) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  const auto session = OpenSession("b");
  v1::RequestEndRequest request;
  request.set_session_id(session->session_id());
  request.set_generation(session->generation());
  request.set_reason("enough");
  ASSERT_TRUE(chief_->RequestEnd(request).ok());
  ASSERT_TRUE(chief_->End("the program left").ok()) << "before the thread that carries out wishes";
  EXPECT_EQ(Record().end().reason(), "b asked for it: enough");
}

TEST_F(ChiefTest, AnEndOfTheInputIsOnRecordBeforeAnyoneHearsOfIt) {
  ASSERT_TRUE(Start().ok());
  TrainTo(2);
  StepFrame frame = worker_->NewFrame(*worker_->token());
  frame.end = true;
  frame.end_of_input = true;
  ASSERT_TRUE(worker_->Send(frame).ok());
  absl::Status status;
  std::thread waiter([&] { status = chief_->Wait(); });
  while (!worker_->finished()) {
    worker_->Drain();
    std::this_thread::yield();
  }
  // Who starts now has no workers to find the end again.
  EXPECT_EQ(Record().end().step(), 2);
  worker_.reset();
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ChiefTest, AStopWhileTheModelIsDeclaredEndsTheWaitForIt) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("worker").ok());
  EXPECT_TRUE(chief_->AwaitModel().ok());
  chief_->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->AwaitModel())) << "Wait may have returned before there was a model";
  EXPECT_TRUE(absl::IsCancelled(chief_->Wait()));
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
    const v1::Token token = *worker_->token();
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
    // The time below advances whatever the checkpoint writer's thread does.
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
      clock_.Advance(absl::Milliseconds(50));
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
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_session_id(chief_->GetStatus().worker(0).session_id());
    heartbeat.set_generation(chief_->generation());
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

TEST_F(ChiefTest, TheEventsHaveEveryStepHoweverLateTheThreadThatCommittedIt) {
  config_.mutable_summary()->set_every_steps(1);
  ASSERT_TRUE(Start().ok());
  const auto a = Connect(OpenSession("a")->session_id());
  const uint64_t session = OpenSession("b")->session_id();
  std::shared_ptr<HeldListener> listener;
  auto b = std::make_unique<FrameWorker>(session, chief_->generation(), [&](std::shared_ptr<StepListener> to) {
    listener = std::make_shared<HeldListener>(std::move(to));
    return chief_->OpenStep(session, chief_->generation(), ValuePath::kStreamed, listener).value();
  });
  FrameWorker* const workers[] = {a.get(), b.get()};
  for (FrameWorker* worker : workers) ASSERT_TRUE(worker->Ask().ok());
  while (chief_->GetStatus().global_step() < 8) {
    for (FrameWorker* worker : workers) {
      worker->Drain();
      if (!worker->token() || worker->token()->step() == 8) continue;
      ASSERT_TRUE(worker->Push().ok());
    }
  }
  for (FrameWorker* worker : workers) worker->Drain();
  ASSERT_TRUE(a->token() && b->token()) << "a slot of step 8 each";
  ASSERT_TRUE(b->Push().ok());
  listener->Hold();
  std::thread late([&] { EXPECT_TRUE(a->Push().ok()); });
  listener->AwaitHeld();  // step 9 is committed
  b->Drain();
  ASSERT_TRUE(b->Push().ok());
  clock_.Advance(absl::Seconds(3));  // the lease of the other's slot
  chief_->Housekeep();
  b->Drain();
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 10);
  EXPECT_TRUE(chief_->Save().ok());
  // Nothing else is waited for.
  a->connection()->Close();
  b.reset();
  std::thread scheduler([&] {
    clock_.AwaitWaiters(1);
    listener->Release();
  });
  EXPECT_TRUE(chief_->Wait().ok());
  scheduler.join();
  late.join();
  EXPECT_THAT(Events(0), AllOf(Contains("loss 9"), Contains("loss 10")));
  EXPECT_EQ(Events(0).back(), "STOP 0");
}

TEST_F(ChiefTest, TheEventsOfAFollowedRunEndWithItsFollower) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  chief_->EndFollowersEvents();  // nothing, before there is a model
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  ASSERT_TRUE(worker_->Ask().ok());
  TrainTo(3);
  chief_->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->Wait()));
  EXPECT_THAT(Events(0), AllOf(Contains("CHECKPOINT 3"), Not(Contains("STOP 0"))));
  chief_->EndFollowersEvents();
  EXPECT_EQ(Events(0).back(), "STOP 0");
}

TEST_F(ChiefTest, WhatHooksCameToAtARestoredLastStepIsSaved) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  const v1::SessionState seen = HookState(2);
  chief_->training()->log()->SetState(seen.step(), {seen.hook(0)});
  ASSERT_TRUE(worker_->Ask().ok());
  TrainAndSave(3);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->training()->log()->restored().step(), 2);
  worker_ = Connect(OpenSession("worker-0")->session_id());
  ASSERT_TRUE(worker_->Ask().ok());
  // A hook sees the update to the last step, and ends the run.
  const v1::SessionState last = HookState(3);
  ASSERT_TRUE(chief_->End("hook count", &last).ok());
  EXPECT_TRUE(WaitForEnd().ok());
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->training()->log()->restored().step(), 3);
}

TEST_F(ChiefTest, AFollowerHearsThatTheLogdirIsLost) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  worker_ = Connect(OpenSession("worker-0")->session_id());
  ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/generation", "7\n").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->Save()));
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->Wait()));
  const auto next = chief_->training()->log()->Await(0, absl::InfinitePast());
  EXPECT_TRUE(absl::IsFailedPrecondition(next.status())) << next.status() << ": it would wait for ever";
}

TEST_F(ChiefTest, AChiefWithoutItsLogdirRecordsNoDeclarationAndTheWorkerIsToLookForAnother) {
  for (const bool first : {true, false}) {
    ASSERT_TRUE(Restart().ok());
    // The record has no canary yet, so the next worker declares one.
    if (!first) {
      ASSERT_TRUE(OpenSession("a", FrameModel(), /*incarnation=*/1, /*canary=*/0).ok());
    }
    ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/generation", "7\n").ok());
    const auto opened = OpenSession("b");
    EXPECT_TRUE(absl::IsUnavailable(opened.status())) << opened.status();
    if (first) {
      EXPECT_FALSE(ReadRunRecord(&memory_, "logdir").value().has_value());
    } else {
      EXPECT_EQ(Record().canary().result_size(), 0);
    }
  }
}

TEST_F(ChiefTest, AChangeThatAFailureOvertakesSaysWhy) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  Training* const training = chief_->training();
  EXPECT_TRUE(training->Explain(absl::OkStatus()).ok());
  training->Fail(absl::InternalError("Input/output error"));
  const absl::Status held = training->sync()->CheckHeld();
  EXPECT_TRUE(absl::IsCancelled(held)) << held;
  EXPECT_TRUE(absl::IsInternal(training->Explain(held))) << "it would pass for a stop, after which all is saved";
}

TEST_F(ChiefTest, AFollowerEndsNoEventsInALogdirThatAnotherChiefHasTakenOver) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  ASSERT_TRUE(worker_->Ask().ok());
  TrainTo(3);
  ASSERT_TRUE(memory_.Remove("logdir/lock").ok());
  const auto successor = RunDirectory::Open(&memory_, "logdir").value();
  EXPECT_FALSE(chief_->Save().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->Wait()));
  chief_->EndFollowersEvents();
  worker_.reset();
  chief_.reset();
  EXPECT_THAT(Events(0), AllOf(Contains("START 0"), Not(Contains("STOP 0"))));
}

TEST_F(ChiefTest, GoesOnWhenItCannotSeeWhetherItsLogdirIsItsOwn) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(3);
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "logdir/generation", absl::InternalError("Input/output error"));
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
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session);
  heartbeat.set_generation(chief_->generation());
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

TEST_F(ChiefTest, ACheckpointThatHangsHoldsStepsOnlyWhereTheNextButOneIsDue) {
  config_.mutable_checkpoint()->set_every_steps(2);
  config_.mutable_checkpoint()->set_keep(0);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  TrainTo(6);  // 4 waits, and 6 would take its place
  chief_->Housekeep();
  EXPECT_EQ(chief_->GetStatus().global_step(), 6);
  EXPECT_TRUE(OpenSession("worker-0").ok());
  hanging_.Release();
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  for (int64_t step = 2; step <= 10; step += 2) {
    EXPECT_TRUE(memory_.Exists(absl::StrCat("logdir/model.ckpt-", step, ".index")).value()) << step;
  }
}

TEST_F(ChiefTest, AChiefThatIsDestroyedWhileStepsWaitForTheDiskWritesThemFirst) {
  config_.mutable_checkpoint()->set_every_steps(2);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  TrainTo(6);  // 4 waits for 2, and 6 for 4
  worker_.reset();
  std::thread disk([&] {
    clock_.AwaitWaiters(1);  // the end of the chief, for the disk
    hanging_.Release();
  });
  chief_.reset();
  disk.join();
  for (int64_t step = 2; step <= 6; step += 2) {
    EXPECT_TRUE(memory_.Exists(absl::StrCat("logdir/model.ckpt-", step, ".index")).value()) << step;
  }
}

TEST_F(ChiefTest, SessionsWithoutAStreamExpire) {
  ASSERT_TRUE(Start().ok());
  const uint64_t silent = OpenSession("silent")->session_id();
  const uint64_t beating = OpenSession("beating")->session_id();
  TrainTo(1);
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_generation(1);
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
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_generation(1);
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
