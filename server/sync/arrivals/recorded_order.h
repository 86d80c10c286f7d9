#ifndef LOCKSTEP_SERVER_SYNC_ARRIVALS_RECORDED_ORDER_H_
#define LOCKSTEP_SERVER_SYNC_ARRIVALS_RECORDED_ORDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/arrival.pb.h"

namespace lockstep {

inline constexpr char kArrivalLogFormat[] = "lockstep arrivals";

// Returns the path of the arrival log of an incarnation.
std::string ArrivalFile(const std::string& logdir, int64_t generation);
// Returns the generations and names of all arrival logs in the logdir, ordered by generation.
absl::StatusOr<std::vector<std::pair<int64_t, std::string>>> ArrivalFiles(FileSystem* fs, const std::string& logdir);

// The order in which contributions were admitted to a range of a run's steps, as recorded in the logdir (ArrivalLog).
// If several incarnations computed the same step, the last one's order counts. Immutable.
class RecordedOrder {
 public:
  // Reads the records of the steps after `first`, up to and including `last`. A file that is damaged, or that was cut
  // off when its chief was killed, counts up to that point. Errors: InvalidArgument if a file with such a name is not
  // an arrival log or belongs to another run; DataLoss if the damage hides the step from which a file counts; errors of
  // the file system.
  static absl::StatusOr<RecordedOrder> Read(FileSystem* fs, const std::string& logdir, const std::string& run_id,
                                            int64_t first, int64_t last);

  // Returns the contributions to the update that produced `step`, in slot order, or NotFound if fewer than `least` are
  // on record.
  absl::StatusOr<std::vector<v1::Arrival>> ArrivalsOf(int64_t step, int64_t least) const;

 private:
  // Reads one file.
  absl::Status Add(FileSystem* fs, const std::string& path, const std::string& run_id, int64_t first, int64_t last);

  std::string logdir_;
  std::map<int64_t, std::vector<v1::Arrival>> arrivals_;  // by step
  absl::Status damage_;                                   // the last one
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_ARRIVALS_RECORDED_ORDER_H_
