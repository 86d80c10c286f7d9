#include "lockstep/common/client/gradients/frame_builder.h"

#include <utility>

#include "lockstep/common/step/report_parts.h"

namespace lockstep {

FrameBuilder::FrameBuilder(StepFrame first, const FrameSizes& sizes) : first_(std::move(first)), sizes_(sizes) {}

StepFrame FrameBuilder::Take() {
  frame_.session_id = first_.session_id;
  frame_.generation = first_.generation;
  if (!std::exchange(introduced_, true)) {
    frame_.startup_delay_steps = first_.startup_delay_steps;
    frame_.gradient_memory = first_.gradient_memory;
  }
  frame_.step = token_.step();
  frame_.block = {token_.first_slot(), token_.slot_count()};
  frame_bytes_ = 0;
  return std::exchange(frame_, StepFrame());
}

std::vector<StepFrame> FrameBuilder::AddReports(absl::Span<const v1::SlotReport> reports) {
  std::vector<StepFrame> frames;
  for (std::vector<v1::SlotReport>& part : CutReports(reports, sizes_.report_bytes)) {
    if (!frame_.reports.empty()) frames.push_back(Take());
    frame_.reports = std::move(part);
  }
  if (full()) frames.push_back(Take());
  return frames;
}

absl::optional<StepFrame> FrameBuilder::AddPiece(StepPiece piece) {
  frame_bytes_ += static_cast<int64_t>(piece.shared ? piece.shared->bytes : piece.content.bytes());
  frame_.gradients.push_back(std::move(piece));
  if (!full()) return absl::nullopt;
  return Take();
}

StepFrame FrameBuilder::End() {
  if (std::exchange(end_of_input_, false)) {
    frame_ = StepFrame();
    frame_.end_of_input = true;
  }
  frame_.end = true;
  frame_.digests = std::exchange(digests_, {});
  const uint64_t times = std::exchange(times_, 0);
  if (token_.slot_count() > 0) frame_.times = times;
  return Take();
}

StepFrame FrameBuilder::Leave() {
  frame_ = StepFrame();
  frame_.leave = true;
  token_.Clear();
  return Take();
}

}  // namespace lockstep
