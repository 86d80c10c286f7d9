#include "lockstep/server/sync/arrivals/recorded_order.h"

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/common/io/record_io.h"

namespace lockstep {
namespace {

constexpr absl::string_view kPrefix = "arrivals-";
constexpr uint64_t kLargestRecord = 4096;

}  // namespace

std::string ArrivalFile(const std::string& logdir, int64_t generation) {
  return JoinPath(logdir, absl::StrCat(kPrefix, generation));
}

absl::StatusOr<std::vector<std::pair<int64_t, std::string>>> ArrivalFiles(FileSystem* fs, const std::string& logdir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->ListDirectory(logdir));
  std::vector<std::pair<int64_t, std::string>> files;
  for (const std::string& name : names) {
    absl::string_view number = name;
    int64_t generation = 0;
    if (absl::ConsumePrefix(&number, kPrefix) && absl::SimpleAtoi(number, &generation)) {
      files.emplace_back(generation, name);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<RecordedOrder> RecordedOrder::Read(FileSystem* fs, const std::string& logdir, const std::string& run_id,
                                                  int64_t first, int64_t last) {
  RecordedOrder order;
  order.logdir_ = logdir;
  ASSIGN_OR_RETURN(const auto files, ArrivalFiles(fs, logdir));
  for (const auto& [generation, name] : files) {
    RETURN_IF_ERROR(order.Add(fs, JoinPath(logdir, name), run_id, first, last));
  }
  return order;
}

absl::Status RecordedOrder::Add(FileSystem* fs, const std::string& path, const std::string& run_id, int64_t first,
                                int64_t last) {
  ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file, fs->NewRandomAccessFile(path));
  const std::string foreign = ForeignFormatOf(*file);
  const std::unique_ptr<RecordReader> reader = RecordReader::FromFile(path, std::move(file), kLargestRecord);
  const auto not_a_log = [&] {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not an order of arrival that a chief wrote", foreign));
  };
  if (!foreign.empty()) return not_a_log();
  std::string payload;
  auto position = reader->ReadAt(0, &payload);
  // The chief ended before it had anything to record.
  if (absl::IsOutOfRange(position.status())) return absl::OkStatus();
  RETURN_IF_ERROR(position.status());
  v1::ArrivalLogHeader header;
  if (!header.ParseFromString(payload) || header.format() != kArrivalLogFormat) return not_a_log();
  if (header.run_id() != run_id) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is of run ", header.run_id(), ", and the logdir of run ", run_id));
  }
  arrivals_.erase(arrivals_.upper_bound(header.step()), arrivals_.end());
  while (true) {
    position = reader->ReadAt(position->next, &payload);
    if (absl::IsOutOfRange(position.status())) return absl::OkStatus();
    v1::Arrival arrival;
    if (absl::IsDataLoss(position.status())) {
      damage_ = position.status();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(position.status());
    if (!arrival.ParseFromString(payload)) return not_a_log();
    if (arrival.slot() == 0) arrivals_.erase(arrivals_.lower_bound(arrival.step()), arrivals_.end());
    if (arrival.step() <= std::max(first, header.step()) || arrival.step() > last) continue;
    std::vector<v1::Arrival>& of_step = arrivals_[arrival.step()];
    // If of_step has fewer records than that, earlier records of the step were dropped (ArrivalLog::kMaxPendingBytes).
    if (arrival.slot() == static_cast<int64_t>(of_step.size())) of_step.push_back(std::move(arrival));
  }
}

absl::StatusOr<std::vector<v1::Arrival>> RecordedOrder::ArrivalsOf(int64_t step, int64_t least) const {
  const auto found = arrivals_.find(step);
  const int64_t count = found == arrivals_.end() ? 0 : static_cast<int64_t>(found->second.size());
  if (count >= least && count > 0) return found->second;
  return absl::NotFoundError(
      absl::StrCat(logdir_, " has no order of arrival for step ", step,
                   damage_.ok() ? "; training.record_order keeps it" : absl::StrCat(": ", damage_.message())));
}

}  // namespace lockstep
