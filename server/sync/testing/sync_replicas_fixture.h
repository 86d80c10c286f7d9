#ifndef LOCKSTEP_SERVER_SYNC_TESTING_SYNC_REPLICAS_FIXTURE_H_
#define LOCKSTEP_SERVER_SYNC_TESTING_SYNC_REPLICAS_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/policy/policy_factory.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"

namespace lockstep {

// A fixture with a SyncReplicas, the events that it reports, and FrameWorkers to which values are streamed.
class SyncReplicasFixture : public ::testing::Test, protected RunEvents {
 protected:
  using NonFinite = SyncReplicas::Options::NonFinite;

  // The chief's generation.
  static constexpr int64_t kGeneration = 5;
  static constexpr absl::Duration kLease = absl::Seconds(2);

  // Starts a run from zeros, with SGD at a learning rate of 1.
  void Start(int64_t slots, int64_t total_steps = 100, int64_t snapshot_every_steps = 0,
             const Compression& compression = {}, const absl::optional<config::v1::AuditConfig>& audit = {}) {
    config::v1::OptimizerConfig optimizer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    store_ =
        VariableStore::Create(FrameModel(), optimizer, compression, slots, /*share_values=*/false, max_partial_sums_)
            .value();
    store_->Initialize(1);
    SyncReplicas::Options options;
    options.clock = &clock_;
    options.machine.generation = kGeneration;
    options.machine.slots = slots;
    options.machine.total_steps = total_steps;
    options.machine.lease = kLease;
    options.machine.snapshot_every_steps = snapshot_every_steps;
    options.non_finite = non_finite_;
    options.events = this;
    StepShard::Options shard;
    shard.skips_non_finite = non_finite_ == NonFinite::kSkipsStep;
    config::v1::RunSpec config;
    config.mutable_training()->set_replicas_to_aggregate(slots);
    config.mutable_cluster()->set_lease_seconds(absl::ToDoubleSeconds(kLease));
    if (audit) *config.mutable_audit() = *audit;
    sync_ = std::make_unique<SyncReplicas>(
        std::move(options), std::make_unique<StepShard>(store_.get(), slots, shard),
        policy_ != nullptr ? std::move(policy_) : NewStepPolicy(config, store_->layout(), /*step=*/0));
  }

  void OnEvent(const RunEvent& event) override {
    if (event.kind == RunEvent::kFinished) ++completions_;
    if (event.kind == RunEvent::kFailed) failures_.push_back(event.status);
    if (event.kind == RunEvent::kLeft && event.count == 0) ++idle_calls_;
  }
  void OnCommitted(const CommittedStep& committed) override {
    commits_.push_back(committed);
    if (on_commit_) on_commit_();
  }
  void OnSnapshot(VariableSnapshot snapshot) override { snapshots_.push_back(snapshot.step); }
  std::unique_ptr<FrameWorker> Connect(uint64_t session) {
    return std::make_unique<FrameWorker>(session, kGeneration, [this, session](std::shared_ptr<StepListener> listener) {
      return sync_->Connect(session, absl::StrCat("worker-", session), ValuePath::kStreamed, std::move(listener));
    });
  }
  // Completes step 0, after which all workers have their tokens for step 1.
  static void StartStepOne(const std::vector<FrameWorker*>& workers) {
    for (FrameWorker* worker : workers) ASSERT_TRUE(worker->Ask().ok());
    ASSERT_TRUE(workers[0]->Push().ok());
    for (FrameWorker* worker : workers) {
      worker->Drain();
      ASSERT_TRUE(worker->token() && worker->token()->step() == 1);
    }
  }
  static SlotBlock BlockOf(const FrameWorker& worker) {
    EXPECT_TRUE(worker.token().has_value());
    return worker.token() ? SlotBlock{worker.token()->first_slot(), worker.token()->slot_count()} : SlotBlock{-1, -1};
  }
  // Returns the value of w's elements after one step with the gradients slot + 1, with R = slots.
  static float AfterStep0(int64_t slots) { return -static_cast<float>(slots + 1) / 2; }

  // Returns the bytes of the values and the optimizer state.
  std::string Bytes(const VariableStore::Snapshot& snapshot) const {
    std::string bytes(snapshot.values->data(), snapshot.values->size());
    for (const auto& slot : snapshot.optimizer_state) bytes.append(slot->data(), slot->size());
    return bytes;
  }

  SimulatedClock clock_;
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<SyncReplicas> sync_;
  std::vector<CommittedStep> commits_;
  std::function<void()> on_commit_;  // called for each commit
  std::vector<int64_t> snapshots_;
  std::vector<absl::Status> failures_;
  int idle_calls_ = 0;
  int completions_ = 0;
  // Set before Start:
  std::unique_ptr<StepPolicy> policy_;  // null for the configured policy
  NonFinite non_finite_ = NonFinite::kFails;
  int64_t max_partial_sums_ = 0;  // VariableStore::Create
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_TESTING_SYNC_REPLICAS_FIXTURE_H_
