#include "lockstep/server/chief/run/run_target.h"

#include <algorithm>

namespace lockstep {
namespace {

v1::RunRecord::CountedSteps Count(int64_t additional, const v1::RunRecord* record, bool ended, int64_t restored) {
  if (record != nullptr && record->has_counted()) {
    const v1::RunRecord::CountedSteps& counted = record->counted();
    const bool reached = record->finished() && restored >= counted.base() + counted.count();
    if (!ended && counted.count() == additional && !reached) return counted;
  }
  v1::RunRecord::CountedSteps counted;
  counted.set_base(restored);
  counted.set_count(std::min(additional, RunTarget::kUnbounded - restored));
  return counted;
}

}  // namespace

RunTarget RunTarget::Resolve(const config::v1::TrainingConfig& config, const v1::RunRecord* record, int64_t restored) {
  RunTarget target;
  const bool has_end = record != nullptr && record->has_end();
  const bool ended = has_end && record->finished() && restored >= record->end().step();
  if (has_end && !ended) target.end_ = record->end();
  if (config.additional_steps() > 0) {
    target.counted_ = Count(config.additional_steps(), record, ended, restored);
    target.configured_ = target.counted_->base() + target.counted_->count();
  } else {
    target.configured_ = config.unbounded() ? kUnbounded : config.steps();
  }
  if (target.end_ && target.end_->step() >= target.configured_) target.end_.reset();
  return target;
}

bool RunTarget::EndAt(int64_t step, const std::string& reason) {
  if (step >= total_steps()) return false;
  if (!end_) end_.emplace().set_reason(reason);
  end_->set_step(step);
  return true;
}

void RunTarget::FillRecord(v1::RunRecord* record) const {
  record->clear_counted();
  record->clear_end();
  if (counted_) *record->mutable_counted() = *counted_;
  if (end_) *record->mutable_end() = *end_;
}

}  // namespace lockstep
