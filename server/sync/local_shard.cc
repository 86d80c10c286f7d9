#include "lockstep/server/sync/local_shard.h"

#include <utility>

#include "glog/logging.h"

namespace lockstep {

class LocalShard::Sums : public StepSums {
 public:
  Sums(VariableStore* store, int64_t slots, bool skips_non_finite)
      : skips_non_finite_(skips_non_finite), set_(store, slots, skips_non_finite) {}

  void AddReports(absl::Span<const v1::SlotReport> reports) override { set_.AddReports(reports); }
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) override { return set_.AddPiece(block, piece); }
  bool complete() const override { return set_.complete(); }
  absl::optional<NonFinite> FindNonFinite(const SlotBlock& block) const override {
    auto found = set_.FindNonFinite(block);
    if (!found) return absl::nullopt;
    return NonFinite{std::move(found->what), found->slot};
  }
  size_t num_finished_segments() const override { return skips_non_finite_ ? 0 : set_.num_finished_segments(); }

  ContributionSet& set() { return set_; }

 private:
  const bool skips_non_finite_;
  ContributionSet set_;
};

LocalShard::LocalShard(VariableStore* store, int64_t slots, const LocalShardOptions& options)
    : store_(store), slots_(slots), options_(options) {
  for (size_t i = 0; i < layout().segments().size(); ++i) segment_order_.push_back(static_cast<int>(i));
}

std::shared_ptr<StepSums> LocalShard::Begin(int64_t step, float learning_rate) {
  CHECK_EQ(step, store_->step());
  const int64_t every = options_.norms_every_steps;
  store_->BeginUpdate(learning_rate, every > 0 && (step + 1) % every == 0);
  sums_ = std::make_shared<Sums>(store_, slots_, options_.skips_non_finite);
  return sums_;
}

StepShard::Committed LocalShard::Commit() {
  CHECK(sums_ != nullptr && sums_->complete()) << "step " << store_->step() << " is not complete";
  ContributionSet& set = sums_->set();
  const auto updates = set.TakeUpdates();
  Committed committed;
  committed.mean_loss = set.MeanLoss();
  committed.stop = set.stop();
  committed.summaries = set.TakeSummaries();
  segment_order_ = set.finished_segments();
  for (size_t i = 0; i < layout().segments().size(); ++i) {
    const bool trainable = layout().variables()[layout().segments()[i].variable].spec.trainable();
    if (!trainable) segment_order_.push_back(static_cast<int>(i));
  }
  if (options_.skips_non_finite) committed.skipped = sums_->FindNonFinite({0, slots_});
  if (committed.skipped) {
    store_->SkipUpdate();
  } else {
    committed.norms = store_->CommitUpdate(updates);
  }
  sums_.reset();
  return committed;
}

void LocalShard::GiveUp() {
  sums_.reset();
  store_->DropUpdate();
}

std::shared_ptr<const PublishedValues> LocalShard::next_values() const {
  return sums_ == nullptr || options_.skips_non_finite ? nullptr : store_->next_published();
}

std::vector<int> LocalShard::finished_segments() const {
  return sums_ == nullptr || options_.skips_non_finite ? std::vector<int>() : sums_->set().finished_segments();
}

size_t LocalShard::num_finished_segments() const { return sums_ == nullptr ? 0 : sums_->num_finished_segments(); }

}  // namespace lockstep
