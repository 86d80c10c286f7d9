// Runs SyncReplicas under training.first_arrivals according to a script, so that another program can compare it with
// the original after every line. Reads lines from standard input, and answers each with a line of JSON:
//   start replicas=R total=T tokens=N optimizer=TEXT
//                          the first line; TEXT is an OptimizerConfig without spaces and "="
//   join worker=K          the worker connects and requests its first token
//   push worker=K gradient=A,B,C
//                          the worker contributes for its token, and requests the next one; with part=first it only
//                          sends the gradient of v0, and with part=rest everything else
//   end_input worker=K     its input has no batch for its token
//   leave worker=K         its connection ends
//   advance seconds=S      time passes, while workers that hold tokens send heartbeats
// The model has two trained variables, "v0" of shape [], initially 0, and "v1" of shape [2], initially 1.
// The answer has "step", the global step; "values", those of v0 and v1; "tokens", the number in the queue;
// "accumulated", the number of contributions to the current step; "workers", which for each worker is null if it waits,
// and otherwise has the step of its token and the values that it computes with; "finished", which is true once the run
// is over; and "error", the first error, or "".

#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/policy/first_arrivals.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep::train {
namespace {

constexpr int64_t kGeneration = 1;
constexpr absl::Duration kLease = absl::Seconds(5);
constexpr size_t kElements = 3;
using Values = std::array<float, kElements>;  // v0, then v1

v1::ModelSpec Model() {
  v1::ModelSpec model;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "v0" dtype: DT_FLOAT trainable: true }
    variables { name: "v1" dtype: DT_FLOAT shape: 2 trainable: true initializer { constant { value: 1 } } }
  )",
                                                      &model));
  return model;
}

// Returns the elements of both variables; `flat` is laid out as `layout` describes.
Values Flat(const ParameterLayout& layout, const float* flat) {
  const float* second = flat + layout.variables()[1].flat_offset;
  return {flat[layout.variables()[0].flat_offset], second[0], second[1]};
}

std::string Json(const Values& values) {
  const auto number = [](std::string* out, float value) { absl::StrAppendFormat(out, "%.9g", value); };
  return absl::StrCat("[", absl::StrJoin(values, ", ", number), "]");
}

// A worker whose stream does not leave this process. Not thread-safe.
class ScriptWorker {
 public:
  ScriptWorker(uint64_t session, const std::string& name, const ParameterLayout& layout, SyncReplicas* sync)
      : session_(session),
        layout_(layout),
        flat_(static_cast<size_t>(layout.flat_elements())),
        connection_(sync->Connect(session, name, ValuePath::kStreamed, std::make_shared<Listener>())) {}
  ~ScriptWorker() { connection_->Close(); }
  ScriptWorker(const ScriptWorker&) = delete;
  ScriptWorker& operator=(const ScriptWorker&) = delete;

  absl::Status Ask() {
    StepFrame frame = NewFrame();
    frame.end = true;
    return Send(frame);
  }
  absl::Status PushFirst(const Values& gradient) {
    StepFrame frame = NewFrame();
    v1::SlotReport report;
    report.set_slot(frame.block.first);
    report.set_loss(0);
    frame.reports.push_back(report);
    frame.gradients = {Piece(0, gradient.data(), 1)};
    return Send(frame);
  }
  absl::Status PushRest(const Values& gradient) {
    StepFrame frame = NewFrame();
    frame.gradients = {Piece(1, gradient.data() + 1, 2)};
    frame.end = true;
    return Send(frame);
  }
  absl::Status EndInput() {
    StepFrame frame = NewFrame();
    frame.end = frame.end_of_input = true;
    return Send(frame);
  }

  // Takes all replies that are ready.
  void Drain() {
    for (StepReplyFrame reply; connection_->NextReply(&reply); Clear(&reply)) {
      for (const StepPiece& piece : reply.values) {
        const int64_t first = layout_.variables()[static_cast<size_t>(piece.variable)].flat_offset + piece.offset;
        piece.content.CopyTo(0, piece.content.size(), flat_.data() + first);
      }
      if (reply.token) token_ = reply.token;
    }
  }
  uint64_t session() const { return session_; }
  const absl::optional<v1::Token>& token() const { return token_; }
  // The newest values received.
  Values values() const { return Flat(layout_, flat_.data()); }

 private:
  class Listener : public StepListener {
   public:
    void OnReplyReady() override {}
    void OnResume() override {}
    void OnClosed(const absl::Status&, bool) override {}
  };

  // Makes a frame for the block of the worker's token or, if it has no token, for no block.
  StepFrame NewFrame() const {
    StepFrame frame;
    frame.session_id = session_;
    frame.generation = kGeneration;
    if (token_) {
      frame.step = token_->step();
      frame.block = {token_->first_slot(), token_->slot_count()};
    }
    return frame;
  }
  static StepPiece Piece(int64_t variable, const float* elements, int64_t count) {
    StepPiece piece;
    piece.variable = variable;
    piece.content = FloatChunks(elements, count);
    return piece;
  }
  absl::Status Send(const StepFrame& frame) {
    if (frame.end) token_.reset();
    bool waits = false;
    const absl::Status status = connection_->OnFrame(frame, &waits);
    CHECK(!waits) << "only a held run makes a worker wait";
    return status;
  }

  const uint64_t session_;
  const ParameterLayout& layout_;
  std::vector<float> flat_;
  const std::shared_ptr<StepConnection> connection_;
  absl::optional<v1::Token> token_;
};

class Script : private RunEvents {
 public:
  explicit Script(const ScriptLine& line) {
    config::v1::OptimizerConfig optimizer;
    CHECK(google::protobuf::TextFormat::ParseFromString(line.Text("optimizer"), &optimizer)) << line.Text("optimizer");
    replicas_ = line.Int("replicas").value();
    store_ = VariableStore::Create(Model(), optimizer, {}, replicas_).value();
    store_->Initialize(/*seed=*/1);
    FirstArrivalsPolicy::Options options;
    options.replicas_to_aggregate = replicas_;
    options.total_replicas = line.Int("total").value();
    options.initial_tokens = line.Int("tokens").value();
    options.lease = kLease;
    auto policy = std::make_unique<FirstArrivalsPolicy>(options, /*step=*/0);
    policy_ = policy.get();
    SyncReplicas::Options sync;
    sync.clock = &clock_;
    sync.machine.generation = kGeneration;
    sync.machine.slots = replicas_;
    sync.machine.total_steps = 1000000;
    sync.machine.lease = kLease;
    sync.events = this;
    sync_ = std::make_unique<SyncReplicas>(std::move(sync), std::make_unique<StepShard>(store_.get(), replicas_),
                                           std::move(policy));
  }

  void Run(const ScriptLine& line) {
    const std::string& action = line.Word(0);
    if (action == "start") return;
    if (action == "advance") return Advance(line.Seconds("seconds").value());
    const int64_t number = line.Int("worker").value();
    if (action == "join") {
      const std::string name = absl::StrCat("worker-", number);
      workers_[number] = std::make_unique<ScriptWorker>(++sessions_, name, store_->layout(), sync_.get());
      Note(workers_.at(number)->Ask());
    } else if (action == "leave") {
      workers_.erase(number);
    } else if (action == "end_input") {
      Note(workers_.at(number)->EndInput());
    } else {
      CHECK_EQ(action, "push");
      Values gradient = {};
      const std::vector<std::string> parts = absl::StrSplit(line.Text("gradient"), ',');
      CHECK_EQ(parts.size(), gradient.size());
      for (size_t k = 0; k < parts.size(); ++k) CHECK(absl::SimpleAtof(parts[k], &gradient[k])) << parts[k];
      if (line.Text("part") != "rest") Note(workers_.at(number)->PushFirst(gradient));
      if (line.Text("part") != "first") Note(workers_.at(number)->PushRest(gradient));
    }
  }

  std::string State() {
    std::vector<std::string> workers;
    for (const auto& entry : workers_) {
      ScriptWorker& worker = *entry.second;
      worker.Drain();
      const std::string state =
          worker.token() ? absl::StrCat("[", worker.token()->step(), ", ", Json(worker.values()), "]") : "null";
      workers.push_back(absl::StrCat("\"", entry.first, "\": ", state));
    }
    v1::RunStatus status;
    sync_->FillStatus(&status);
    const VariableSnapshot snapshot = sync_->TakeSnapshot();
    const Values values = Flat(*snapshot.layout, reinterpret_cast<const float*>(snapshot.values->data()));
    return absl::StrCat("{\"step\": ", status.global_step(), ", \"values\": ", Json(values),
                        ", \"tokens\": ", policy_->num_tokens(),
                        ", \"accumulated\": ", status.accepted() - replicas_ * status.global_step(), ", \"workers\": {",
                        absl::StrJoin(workers, ", "), "}, \"finished\": ", finished_ ? "true" : "false",
                        ", \"error\": \"", absl::CEscape(error_), "\"}");
  }

 private:
  void OnEvent(const RunEvent& event) override {
    if (event.kind == RunEvent::kFinished) finished_ = true;
    if (event.kind == RunEvent::kFailed) Note(event.status);
  }
  void Note(const absl::Status& status) {
    if (error_.empty() && !status.ok()) error_ = std::string(status.message());
  }
  void Advance(absl::Duration duration) {
    for (absl::Duration passed; passed < duration; passed += absl::Seconds(1)) {
      clock_.Advance(absl::Seconds(1));
      for (const auto& worker : workers_) {
        if (worker.second->token()) sync_->Heartbeat(worker.second->session());
      }
      sync_->Tick();
    }
  }

  SimulatedClock clock_;
  int64_t replicas_ = 0;
  std::unique_ptr<VariableStore> store_;
  FirstArrivalsPolicy* policy_ = nullptr;
  std::unique_ptr<SyncReplicas> sync_;
  std::map<int64_t, std::unique_ptr<ScriptWorker>> workers_;
  uint64_t sessions_ = 0;
  bool finished_ = false;
  std::string error_;  // the first error
};

}  // namespace
}  // namespace lockstep::train

int main() {
  std::unique_ptr<lockstep::train::Script> script;
  for (std::string text; std::getline(std::cin, text);) {
    const lockstep::train::ScriptLine line(text);
    if (script == nullptr) script = std::make_unique<lockstep::train::Script>(line);
    script->Run(line);
    std::cout << script->State() << std::endl;
  }
}
