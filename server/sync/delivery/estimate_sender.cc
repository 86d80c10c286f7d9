#include "lockstep/server/sync/delivery/estimate_sender.h"

#include <utility>

namespace lockstep {

void EstimateSender::Advance(int64_t step, const SlotBlock& block) {
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    const auto it = slots_.find(slot);
    if (it != slots_.end() && it->second.step == step) ++it->second.step;
  }
}

bool EstimateSender::Feed(const ParameterLayout& layout, int64_t step,
                          const std::shared_ptr<const GradientEstimates>& estimates, const SlotBlock& block,
                          StepReplyFrame* reply) {
  const size_t num_segments = layout.segments().size();
  int64_t elements = 0;
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    Slot& sent = slots_[slot];
    if (sent.step != step) {
      // At step 0, both ends know that all estimates are zero.
      sent = {step, step == 0 ? num_segments : 0};
    }
    for (; sent.segments < num_segments; ++sent.segments) {
      const auto& segment = layout.segments()[sent.segments];
      if (!layout.variables()[segment.variable].spec.trainable()) continue;
      if (elements > 0 && elements + segment.elements > max_elements_) return false;
      elements += segment.elements;
      StepPiece piece;
      piece.variable = segment.variable;
      piece.offset = segment.offset;
      piece.slot = slot;
      piece.content = FloatChunks(estimates->at(slot)->as<float>() + segment.flat_offset, segment.elements);
      reply->estimates.push_back(std::move(piece));
      reply->estimates_step = step;
      reply->estimates_owner = estimates;
    }
  }
  slots_.erase(slots_.begin(), slots_.lower_bound(block.first));
  slots_.erase(slots_.lower_bound(block.end()), slots_.end());
  return true;
}

}  // namespace lockstep
