#include "lockstep/server/ps/versions/optimizer_state_versions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/server/ps/versions/read_variable.h"

namespace lockstep {

OptimizerStateVersions::OptimizerStateVersions(std::shared_ptr<const ParameterLayout> layout,
                                               absl::Span<const Optimizer::State> states, size_t spare_versions)
    : layout_(std::move(layout)),
      states_(states.begin(), states.end()),
      pool_(static_cast<size_t>(layout_->flat_elements()) * sizeof(float), spare_versions * states.size()) {}

void OptimizerStateVersions::Renew() {
  current_.clear();
  for (size_t k = 0; k < states_.size(); ++k) current_.push_back(pool_.Get());
}

void OptimizerStateVersions::Clear() {
  Renew();
  for (size_t k = 0; k < states_.size(); ++k) {
    std::fill_n(current_[k]->as<float>(), layout_->flat_elements(), states_[k].initial_value);
  }
}

absl::Status OptimizerStateVersions::Restore(const BundleReader& reader, std::vector<BundleReader::Place>* places,
                                             Lacking* lacking) {
  Renew();
  for (size_t k = 0; k < states_.size(); ++k) {
    for (const auto& variable : layout_->variables()) {
      if (!variable.spec.trainable()) continue;
      const std::string key = OptimizerStateKey(variable.spec.name(), states_[k].name);
      float* const out = current_[k]->as<float>() + variable.flat_offset;
      if (lacking != nullptr && !reader.Contains(key)) {
        std::fill_n(out, variable.elements, states_[k].initial_value);
        (*lacking)[states_[k].name].push_back(&variable);
        continue;
      }
      ASSIGN_OR_RETURN(BundleReader::Place place, PlaceOf(reader, key, variable, out));
      places->push_back(std::move(place));
    }
  }
  return absl::OkStatus();
}

float* OptimizerStateVersions::CopyCurrent(absl::string_view name) {
  for (size_t k = 0; k < current_.size(); ++k) {
    if (states_[k].name != name) continue;
    std::shared_ptr<AlignedBuffer> copy = pool_.Get();
    std::memcpy(copy->data(), current_[k]->data(), current_[k]->size());
    current_[k] = std::move(copy);
    return current_[k]->as<float>();
  }
  return nullptr;
}

void OptimizerStateVersions::BeginUpdate() {
  for (size_t k = 0; k < current_.size(); ++k) next_.push_back(pool_.Get());
}

absl::InlinedVector<const float*, 3> OptimizerStateVersions::Current(const ParameterLayout::Segment& segment) const {
  absl::InlinedVector<const float*, 3> states;
  for (const auto& state : current_) states.push_back(state->as<float>() + segment.flat_offset);
  return states;
}

absl::InlinedVector<float*, 3> OptimizerStateVersions::Next(const ParameterLayout::Segment& segment) const {
  absl::InlinedVector<float*, 3> states;
  for (const auto& state : next_) states.push_back(state->as<float>() + segment.flat_offset);
  return states;
}

void OptimizerStateVersions::Commit() {
  current_.swap(next_);
  next_.clear();
}

void OptimizerStateVersions::AddTo(VariableSnapshot* snapshot) const {
  for (size_t k = 0; k < current_.size(); ++k) {
    snapshot->state_names.push_back(states_[k].name);
    snapshot->optimizer_state.push_back(current_[k]);
  }
}

}  // namespace lockstep
