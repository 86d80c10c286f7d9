#ifndef LOCKSTEP_SERVER_CHIEF_TESTING_CHIEF_FIXTURE_H_
#define LOCKSTEP_SERVER_CHIEF_TESTING_CHIEF_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/summary/testing/events_of.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// A fixture with a chief in this process, its files in memory, and one worker.
class ChiefFixture : public ::testing::Test {
 protected:
  ChiefFixture() {
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
    options.machine.draw_run_id = [this] { return ++last_run_; };
    options.new_run = new_run_;
    options.on_accepted = [this] {
      ++accepted_;
      return absl::OkStatus();
    };
    auto chief = Chief::Create(std::move(options));
    if (!chief.ok()) return chief.status();
    chief_ = *std::move(chief);
    return absl::OkStatus();
  }
  // Restarts the chief as if after kill -9.
  absl::Status Restart() {
    worker_.reset();
    chief_.reset();
    return Start();
  }

  // Opens a session for a worker that has computed the canary, unless `canary` is 0.
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const std::string& worker, const v1::ModelSpec& model = FrameModel(),
                                                   uint64_t incarnation = 1, uint64_t canary = 1) {
    v1::OpenSessionRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    *request.mutable_model() = model;
    if (data_) *request.mutable_data() = *data_;
    request.set_run_id(served_run_);
    request.set_last_step(served_step_);
    CompleteDeclaration(&request, canary);
    if (canary == 0) request.clear_canary_digest();
    return chief_->sessions()->OpenSession(request);
  }
  static v1::SessionState HookState(int64_t step) {
    v1::SessionState state;
    state.set_step(step);
    v1::SessionState::Hook* const hook = state.add_hook();
    hook->set_name("count");
    hook->set_state(absl::StrCat(step));
    return state;
  }
  // Returns the step of the hook state that a checkpoint would store now; 0 if there is none.
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
      return chief_->sessions()
          ->OpenStep(session, chief_->generation(), ValuePath::kStreamed, std::move(listener))
          .value();
    });
  }
  // Trains until the global step is `step`, with one worker whose stream stays open.
  void TrainTo(int64_t step) {
    if (worker_ == nullptr) {
      worker_ = Connect(OpenSession("worker-0")->session_id());
      ASSERT_TRUE(worker_->Ask().ok());
    }
    while (chief_->GetStatus().global_step() < step) {
      // The disk may delay the step.
      while (!worker_->token()) worker_->Drain();
      ASSERT_TRUE(worker_->Push().ok());
    }
  }
  void TrainAndSave(int64_t step) {
    TrainTo(step);
    ASSERT_TRUE(chief_->training()->Save().ok());
  }
  // Calls RunEnds::Wait with a worker that disconnects when it is notified.
  absl::Status WaitForEnd() {
    absl::Status status;
    std::thread waiter([&] { status = chief_->ends()->Wait(); });
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
  // Returns the events (EventsOf) of event file `n`, counted from 0, or nothing if there are fewer files.
  std::vector<std::string> Events(size_t n) {
    std::vector<std::string> files;
    for (const std::string& name : Files()) {
      if (absl::StartsWith(name, "events.out.tfevents.")) files.push_back(JoinPath("logdir", name));
    }
    return n < files.size() ? EventsOf(&memory_, files[n]) : std::vector<std::string>();
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
  // The latest session id. In each incarnation of the chief, the ids are 1, 2, ...
  uint64_t last_session_ = 0;
  std::function<uint64_t()> draw_session_id_ = [this] { return ++last_session_; };
  // The last number drawn for a run id. The numbers are 1, 2, ...
  uint64_t last_run_ = 0;
  bool new_run_ = false;
  // The run and step that workers report as served.
  std::string served_run_;
  int64_t served_step_ = 0;
  // The number of incarnations of the chief that owned the run.
  int accepted_ = 0;
  // The digest of the workers' data.
  absl::optional<v1::DataDigest> data_;
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<FrameWorker> worker_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_TESTING_CHIEF_FIXTURE_H_
