#include "lockstep/server/sync/shard/step_shard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/ps/contribution_set.h"

namespace lockstep {

class StepShard::Sums : public StepSums {
 public:
  Sums(VariableStore* store, int64_t slots, const Options& options)
      : skips_non_finite_(options.skips_non_finite),
        set_(store, slots, ContributionSet::Options{options.skips_non_finite, options.applies_sum}) {}

  void AddReports(absl::Span<const v1::SlotReport> reports) override { set_.AddReports(reports); }
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) override { return set_.AddPiece(block, piece); }
  bool complete() const override { return set_.complete(); }
  absl::optional<NonFiniteValue> FindNonFinite(const SlotBlock& block) const override {
    return rate_ ? rate_ : set_.FindNonFinite(block);
  }
  size_t num_finished_segments() const override { return skips_non_finite_ ? 0 : set_.num_finished_segments(); }

  ContributionSet& set() { return set_; }
  // Records a learning rate that is not finite; nullopt if the step's rate is finite. Called before anything is added.
  void SetRate(absl::optional<NonFiniteValue> rate) { rate_ = std::move(rate); }

 private:
  const bool skips_non_finite_;
  ContributionSet set_;
  absl::optional<NonFiniteValue> rate_;
};

// The sums of finished steps, kept for reuse, because creating them takes longer than a small step's additions.
struct StepShard::FreeList {
  // A frame of a finished step may still hold that step's sums when the step after the next one begins.
  static constexpr size_t kMaxSpare = 2;
  Mutex mutex;
  std::vector<std::unique_ptr<Sums>> spare ABSL_GUARDED_BY(mutex);
};

StepShard::StepShard(VariableStore* store, int64_t slots, const Options& options)
    : store_(store), slots_(slots), options_(options), free_list_(std::make_shared<FreeList>()) {
  for (size_t i = 0; i < layout().segments().size(); ++i) {
    const ParameterLayout::Variable& variable = layout().variables()[layout().segments()[i].variable];
    if (variable.constant) continue;
    segment_order_.push_back(static_cast<int>(i));
    if (!variable.spec.trainable()) updated_segments_.push_back(static_cast<int>(i));
  }
}

std::shared_ptr<StepShard::Sums> StepShard::NewSums() {
  std::unique_ptr<Sums> sums;
  {
    MutexLock lock(&free_list_->mutex);
    if (!free_list_->spare.empty()) {
      sums = std::move(free_list_->spare.back());
      free_list_->spare.pop_back();
    }
  }
  if (sums == nullptr) {
    sums = std::make_unique<Sums>(store_, slots_, options_);
  } else {
    sums->set().Restart();
  }
  return std::shared_ptr<Sums>(sums.release(), [free_list = free_list_](Sums* returned) {
    std::unique_ptr<Sums> owned(returned);
    if (!owned->complete()) owned->set().ReleaseMemory();
    MutexLock lock(&free_list->mutex);
    if (free_list->spare.size() < FreeList::kMaxSpare) free_list->spare.push_back(std::move(owned));
  });
}

std::shared_ptr<StepSums> StepShard::Begin(int64_t step) {
  CHECK_EQ(step, store_->step());
  const int64_t every = options_.norms_every_steps;
  const bool gathers = every > 0 && (step + 1) % every == 0;
  store_->BeginUpdate(gathers ? VariableStore::Norms::kGathered : VariableStore::Norms::kNone);
  sums_ = NewSums();
  absl::optional<NonFiniteValue> rate;
  if (const auto schedule = store_->FindNonFiniteRate()) {
    rate = NonFiniteValue{absl::StrCat("learning rate of the schedule \"", *schedule, "\""), absl::nullopt,
                          /*contributed=*/false};
  }
  sums_->SetRate(std::move(rate));
  return sums_;
}

StepShard::Committed StepShard::Commit() {
  CHECK(sums_ != nullptr && sums_->complete()) << "step " << store_->step() << " is not complete";
  ContributionSet& set = sums_->set();
  ContributionSet::Results results = set.TakeResults();
  Committed committed;
  committed.mean_loss = results.mean_loss;
  committed.stop = results.stop;
  committed.summaries = std::move(results.summaries);
  committed.metrics = std::move(results.metrics);
  set.TakeFinishedSegments(&segment_order_);
  segment_order_.insert(segment_order_.end(), updated_segments_.begin(), updated_segments_.end());
  if (options_.skips_non_finite) committed.skipped = sums_->FindNonFinite({0, slots_});
  if (committed.skipped) {
    store_->SkipUpdate();
  } else {
    committed.norms = store_->CommitUpdate(results.updates);
  }
  sums_.reset();
  return committed;
}

void StepShard::GiveUp() {
  sums_.reset();
  store_->DropUpdate();
}

const v1::SharedMemoryHandle* StepShard::values_memory() const {
  const bool has_constants = layout().constant_elements() > 0;
  return has_constants && constants_memory() == nullptr ? nullptr : store_->values()->handle();
}

const v1::SharedMemoryHandle* StepShard::constants_memory() const {
  const AlignedBuffer* const constants = store_->published()->constants->flat.get();
  return constants == nullptr ? nullptr : constants->handle();
}

std::shared_ptr<const PublishedValues> StepShard::next_values() const {
  return sums_ == nullptr || options_.skips_non_finite ? nullptr : store_->next_published();
}

std::vector<int> StepShard::finished_segments() const {
  return sums_ == nullptr || options_.skips_non_finite ? std::vector<int>() : sums_->set().finished_segments();
}

size_t StepShard::num_finished_segments() const { return sums_ == nullptr ? 0 : sums_->num_finished_segments(); }

}  // namespace lockstep
