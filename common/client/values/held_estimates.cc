#include "lockstep/common/client/values/held_estimates.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep {

HeldEstimates::HeldEstimates(const ParameterLayout* layout, int64_t slots) : layout_(*layout), slots_(slots) {
  for (const auto& variable : layout_.variables()) {
    if (variable.spec.trainable()) total_elements_ += variable.elements;
  }
}

bool HeldEstimates::Holds(int64_t step, int64_t slot) const {
  const auto it = estimates_.find(slot);
  return it != estimates_.end() && it->second.step == step && it->second.received_elements == total_elements_;
}

HeldEstimates::Estimate* HeldEstimates::Find(int64_t step, int64_t slot) {
  Estimate& estimate = estimates_[slot];
  if (estimate.flat.size() == 0) {
    estimate.flat = AlignedBuffer(static_cast<size_t>(layout_.trained_elements()) * sizeof(float));
  }
  if (estimate.step != step) {
    estimate.step = step;
    estimate.received_elements = 0;
  }
  return &estimate;
}

absl::Status HeldEstimates::Receive(int64_t step, const StepPiece& piece) {
  if (piece.slot < 0 || piece.slot >= slots_) {
    return absl::InvalidArgumentError(absl::StrCat("an estimate for slot ", piece.slot, " of ", slots_));
  }
  if (piece.variable >= static_cast<int64_t>(layout_.variables().size())) {
    return absl::InvalidArgumentError(absl::StrCat("an estimate for variable number ", piece.variable));
  }
  const auto& variable = layout_.variables()[piece.variable];
  if (!variable.spec.trainable()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an estimate of the gradient of ", variable.spec.name(), ", which is not trained"));
  }
  if (piece.content.type() != v1::DT_FLOAT || piece.content.bytes() % sizeof(float) != 0 ||
      piece.content.size() > variable.elements - piece.offset) {
    return absl::InvalidArgumentError(absl::StrCat("an estimate of the gradient of ", variable.spec.name(),
                                                   " at element ", piece.offset, " with ", piece.content.bytes(),
                                                   " bytes"));
  }
  Estimate* const estimate = Find(step, piece.slot);
  piece.content.CopyTo(0, piece.content.size(), estimate->flat.as<float>() + variable.flat_offset + piece.offset);
  estimate->received_elements += piece.content.size();
  return absl::OkStatus();
}

void HeldEstimates::Copy(int64_t step, int64_t slot, const AlignedBuffer& flat) {
  Estimate* const estimate = Find(step, slot);
  std::memcpy(estimate->flat.data(), flat.data(), estimate->flat.size());
  estimate->received_elements = total_elements_;
}

absl::StatusOr<std::vector<float*>> HeldEstimates::Take(int64_t step, const SlotBlock& block) {
  estimates_.erase(estimates_.begin(), estimates_.lower_bound(block.first));
  estimates_.erase(estimates_.lower_bound(block.end()), estimates_.end());
  std::vector<float*> pointers;
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    if (!Holds(step, slot)) {
      if (step != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("a token for slot ", slot, " of step ", step, " without the estimate of its gradient"));
      }
      Estimate* const estimate = Find(step, slot);
      std::memset(estimate->flat.data(), 0, estimate->flat.size());
      estimate->received_elements = total_elements_;
    }
    pointers.push_back(estimates_[slot].flat.as<float>());
  }
  return pointers;
}

void HeldEstimates::Advance() {
  for (auto& entry : estimates_) ++entry.second.step;
}

}  // namespace lockstep
