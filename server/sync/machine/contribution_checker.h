#ifndef LOCKSTEP_SERVER_SYNC_MACHINE_CONTRIBUTION_CHECKER_H_
#define LOCKSTEP_SERVER_SYNC_MACHINE_CONTRIBUTION_CHECKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Checks the contributions whose frames arrive over one stream. The frames of a contribution must belong together, fit
// the model, name each slot and segment exactly once, have the reports before the gradients, and be complete at the
// end. Contributions that pass may be summed without further checks. Knows nothing about tokens or the step's other
// contributions. Errors are InvalidArgument and name the object and the numbers that disagree. Call Begin first, then
// CheckFrame for every frame, and CheckWhole after the last one. Pure; not thread-safe.
class ContributionChecker {
 public:
  struct Options {
    // The data type of gradients on the wire.
    v1::DataType gradients = v1::DT_FLOAT;
    // If true, gradients are sent as the differences between each slot's gradient and its estimate (top-k compression),
    // and a piece is one segment of one slot.
    bool sparse = false;
  };

  // `layout` must outlive this object.
  ContributionChecker(const ParameterLayout* layout, const Options& options);

  // Forgets the previous contribution.
  void Begin(int64_t step, const SlotBlock& block);
  // Checks the contribution's next frame. If the frame is not `wanted`, because its step has ended, only the order is
  // checked and nothing is kept.
  absl::Status CheckFrame(const StepFrame& frame, bool wanted);
  // Checks that every trainable segment has arrived (for each slot, if sparse).
  absl::Status CheckWhole() const;

  // Returns true if every slot has reported.
  bool reported() const { return joiner_.complete(); }
  // Returns the checked reports of all slots once they are complete, until Begin or DropReports.
  const std::vector<v1::SlotReport>& reports() const { return joiner_.kept(); }
  void DropReports() { joiner_.Drop(); }

 private:
  absl::Status CheckReports(const std::vector<v1::SlotReport>& reports, bool wanted);
  // Checks the complete report of one slot of the block.
  absl::Status CheckReport(const v1::SlotReport& report) const;
  absl::Status CheckReported() const;
  absl::Status CheckPiece(const StepPiece& piece) const;
  // Checks that the piece consists of whole segments.
  absl::Status CheckDense(const StepPiece& piece) const;
  // Checks that the piece holds one segment's differences.
  absl::Status CheckSparse(const StepPiece& piece) const;
  // Checks that each segment of a checked piece arrives only once.
  absl::Status MarkPiece(const StepPiece& piece);
  int64_t pieces_of_a_segment() const { return options_.sparse ? block_.count : 1; }

  const ParameterLayout& layout_;
  const Options options_;
  ReportJoiner::Options report_limits_;
  int64_t step_ = 0;
  SlotBlock block_;
  ReportJoiner joiner_;
  std::vector<bool> seen_;      // the slots that have a complete report
  std::vector<bool> segments_;  // arrived segments; if sparse, slot by slot
  int64_t num_segments_ = 0;
};

// Checks that a frame outside of any contribution contains no part of one.
absl::Status CheckEmpty(const StepFrame& frame);

// Returns the limits of a frame in a run with `slots` slots.
StepFrameLimits FrameLimitsOf(const ParameterLayout& layout, int64_t slots, bool sparse);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_CONTRIBUTION_CHECKER_H_
