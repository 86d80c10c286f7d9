#include "lockstep/server/ps/versions/estimate_versions.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/sparse_differences.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/server/ps/versions/read_variable.h"

namespace lockstep {

EstimateVersions::EstimateVersions(std::shared_ptr<const ParameterLayout> layout, int64_t num_slots)
    : layout_(std::move(layout)),
      num_slots_(num_slots),
      pool_(static_cast<size_t>(layout_->trained_elements()) * sizeof(float), static_cast<size_t>(num_slots)) {}

void EstimateVersions::Clear() {
  current_ = nullptr;
  auto estimates = std::make_shared<GradientEstimates>();
  for (int64_t slot = 0; slot < num_slots_; ++slot) {
    const auto zeros = pool_.Get();
    std::memset(zeros->data(), 0, zeros->size());
    estimates->push_back(zeros);
  }
  current_ = std::move(estimates);
}

absl::Status EstimateVersions::Restore(const BundleReader& reader, std::vector<BundleReader::Place>* places,
                                       bool may_lack) {
  current_ = nullptr;
  auto estimates = std::make_shared<GradientEstimates>();
  for (int64_t slot = 0; slot < num_slots_; ++slot) {
    const auto estimate = pool_.Get();
    for (const auto& variable : layout_->variables()) {
      if (!variable.spec.trainable()) continue;
      const std::string key = GradientEstimateKey(variable.spec.name(), slot);
      float* const out = estimate->as<float>() + variable.flat_offset;
      if (may_lack && !reader.Contains(key)) {
        std::fill_n(out, variable.elements, 0.0f);
        continue;
      }
      ASSIGN_OR_RETURN(BundleReader::Place place, PlaceOf(reader, key, variable, out));
      places->push_back(std::move(place));
    }
    estimates->push_back(estimate);
  }
  current_ = std::move(estimates);
  return absl::OkStatus();
}

void EstimateVersions::BeginUpdate() {
  for (int64_t slot = 0; slot < num_slots_; ++slot) next_.push_back(pool_.Get());
}

const float* EstimateVersions::AddToEstimate(const ParameterLayout::Segment& segment, int64_t slot,
                                             absl::string_view differences) {
  float* const next = next_[slot]->as<float>() + segment.flat_offset;
  std::memcpy(next, (*current_)[slot]->as<float>() + segment.flat_offset,
              static_cast<size_t>(segment.elements) * sizeof(float));
  AddDifferences(differences, next);
  return next;
}

void EstimateVersions::Commit() {
  if (num_slots_ == 0) return;
  current_ = std::make_shared<GradientEstimates>(next_.begin(), next_.end());
  next_.clear();
}

}  // namespace lockstep
