#include "lockstep/server/ps/versions/optimizer_state_versions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/server/ps/versions/read_variable.h"

namespace lockstep {

namespace {

using States = std::vector<std::vector<Optimizer::State>>;

size_t MostStates(const States& states) {
  size_t most = 0;
  for (const auto& of_variable : states) most = std::max(most, of_variable.size());
  return most;
}

std::shared_ptr<const std::vector<std::vector<std::string>>> NamesOf(const States& states) {
  auto names = std::make_shared<std::vector<std::vector<std::string>>>();
  for (const auto& of_variable : states) {
    names->emplace_back();
    for (const Optimizer::State& state : of_variable) names->back().push_back(state.name);
  }
  return names;
}

}  // namespace

OptimizerStateVersions::OptimizerStateVersions(std::shared_ptr<const ParameterLayout> layout,
                                               std::vector<std::vector<Optimizer::State>> states, size_t spare_versions)
    : layout_(std::move(layout)),
      states_(std::move(states)),
      arrays_(MostStates(states_)),
      names_(NamesOf(states_)),
      pool_(static_cast<size_t>(layout_->trained_elements()) * sizeof(float), spare_versions * arrays_) {}

void OptimizerStateVersions::Renew() {
  current_.clear();
  for (size_t k = 0; k < arrays_; ++k) current_.push_back(pool_.Get());
}

void OptimizerStateVersions::Clear() {
  Renew();
  for (const auto& array : current_) std::fill_n(array->as<float>(), layout_->trained_elements(), 0.0f);
  for (size_t i = 0; i < states_.size(); ++i) {
    const ParameterLayout::Variable& variable = layout_->variables()[i];
    for (size_t k = 0; k < states_[i].size(); ++k) {
      const float initial = states_[i][k].initial_value;
      if (initial != 0) std::fill_n(current_[k]->as<float>() + variable.flat_offset, variable.elements, initial);
    }
  }
}

absl::Status OptimizerStateVersions::Restore(const BundleReader& reader, std::vector<BundleReader::Place>* places,
                                             Lacking* lacking) {
  Renew();
  for (size_t i = 0; i < states_.size(); ++i) {
    const ParameterLayout::Variable& variable = layout_->variables()[i];
    for (size_t k = 0; k < states_[i].size(); ++k) {
      const std::string key = OptimizerStateKey(variable.spec.name(), states_[i][k].name);
      float* const out = current_[k]->as<float>() + variable.flat_offset;
      if (lacking != nullptr && !reader.Contains(key)) {
        std::fill_n(out, variable.elements, states_[i][k].initial_value);
        lacking->push_back({static_cast<int>(i), k});
        continue;
      }
      ASSIGN_OR_RETURN(BundleReader::Place place, PlaceOf(reader, key, variable, out));
      places->push_back(std::move(place));
    }
  }
  return absl::OkStatus();
}

float* OptimizerStateVersions::CopyCurrent(size_t k) {
  std::shared_ptr<AlignedBuffer> copy = pool_.Get();
  std::memcpy(copy->data(), current_[k]->data(), current_[k]->size());
  current_[k] = std::move(copy);
  return current_[k]->as<float>();
}

void OptimizerStateVersions::BeginUpdate() {
  for (size_t k = 0; k < current_.size(); ++k) next_.push_back(pool_.Get());
}

absl::InlinedVector<const float*, 3> OptimizerStateVersions::Current(const ParameterLayout::Segment& segment) const {
  absl::InlinedVector<const float*, 3> states;
  for (size_t k = 0; k < states_[segment.variable].size(); ++k) {
    states.push_back(current_[k]->as<float>() + segment.flat_offset);
  }
  return states;
}

absl::InlinedVector<float*, 3> OptimizerStateVersions::Next(const ParameterLayout::Segment& segment) const {
  absl::InlinedVector<float*, 3> states;
  for (size_t k = 0; k < std::min(next_.size(), states_[segment.variable].size()); ++k) {
    states.push_back(next_[k]->as<float>() + segment.flat_offset);
  }
  return states;
}

void OptimizerStateVersions::Commit() {
  current_.swap(next_);
  next_.clear();
}

void OptimizerStateVersions::AddTo(VariableSnapshot* snapshot) const {
  snapshot->state_names = names_;
  snapshot->optimizer_state.assign(current_.begin(), current_.end());
}

}  // namespace lockstep
