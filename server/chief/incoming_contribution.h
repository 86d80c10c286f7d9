#ifndef LOCKSTEP_SERVER_CHIEF_INCOMING_CONTRIBUTION_H_
#define LOCKSTEP_SERVER_CHIEF_INCOMING_CONTRIBUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/client/report_parts.h"
#include "common/client/step_frame.h"
#include "common/sync/slot_block.h"
#include "common/tensor/parameter_layout.h"

namespace lockstep {

// The contribution whose frames are coming in over one stream: whether they belong together, come in order and are
// whole. Knows nothing of the step's other contributions. Errors are InvalidArgument and name what disagrees.
// Life: Begin, then for every frame CheckSame, AddReports and MarkPiece, then End. Not thread-safe.
class IncomingContribution {
 public:
  // `layout` must outlive this.
  explicit IncomingContribution(const ParameterLayout* layout) : layout_(*layout) {}

  // `sparse`: pieces are a segment of one slot each, of every slot of the block (ContributionSet::CheckSparsePiece).
  void Begin(int64_t step, const SlotBlock& block, bool sparse = false);
  bool begun() const { return begun_; }
  // The frame is for the step and block that have begun.
  absl::Status CheckSame(int64_t step, const SlotBlock& block) const;
  // Reports, whole or in parts, come once, in one frame or several, and before the first piece. Without `keep` they are
  // only checked.
  absl::Status AddReports(absl::Span<const SlotReport> reports, bool keep);
  bool reported() const { return reports_.complete(); }
  // Those that were kept.
  std::vector<SlotReport> TakeReports() { return reports_.Take(); }
  absl::Status CheckReported() const;
  // `piece` consists of whole segments (ContributionSet::CheckPiece), each of which may come once (for each slot).
  absl::Status MarkPiece(const StepPiece& piece);
  // Every trainable segment was marked (for each slot).
  absl::Status CheckWhole() const;
  void End();

  // Whether something of it was new to the step.
  void MarkNew() { any_new_ = true; }
  bool any_new() const { return any_new_; }

 private:
  int64_t pieces_of_a_segment() const { return sparse_ ? block_.count : 1; }

  const ParameterLayout& layout_;
  bool begun_ = false;
  int64_t step_ = 0;
  SlotBlock block_;
  bool sparse_ = false;
  ReportJoiner reports_;
  bool any_new_ = false;
  std::vector<bool> segments_;  // received; when sparse, those of the first slot, of the second, ...
  int64_t num_segments_ = 0;
};

// Of the update values in one slot's report.
int64_t UpdateBytes(const ParameterLayout& layout);

// "slots [4,6) of step 17"
std::string DescribeBlock(int64_t step, const SlotBlock& block);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_INCOMING_CONTRIBUTION_H_
