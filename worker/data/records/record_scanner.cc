#include "lockstep/worker/data/records/record_scanner.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr uint64_t kProgressBytes = 64 << 20;
constexpr int64_t kLoggedDamages = 10;

// A window that slides over a file.
class Window {
 public:
  Window(const RandomAccessFile& file, uint64_t begin) : file_(file), offset_(begin) {}

  // Position of data() in the file.
  uint64_t offset() const { return offset_; }
  absl::string_view data() const { return absl::string_view(buffer_).substr(start_); }
  bool at_end() const { return offset_ + data().size() >= file_.size(); }

  // Moves the start of data() by `n` bytes, at most data().size().
  void Advance(size_t n) {
    start_ += n;
    offset_ += n;
  }

  void AdvanceToEnd() {
    buffer_.clear();
    start_ = 0;
    offset_ = file_.size();
  }

  // Extends data(), at least doubling it.
  absl::Status Grow() {
    buffer_.erase(0, start_);
    start_ = 0;
    const size_t old_size = buffer_.size();
    const uint64_t left = file_.size() - (offset_ + old_size);
    const size_t n = static_cast<size_t>(std::min<uint64_t>(left, std::max(old_size, kChunkBytes)));
    buffer_.resize(old_size + n);
    return file_.Read(offset_ + old_size, n, &buffer_[old_size]);
  }

 private:
  const RandomAccessFile& file_;
  std::string buffer_;
  size_t start_ = 0;
  uint64_t offset_;
};

class Scanner {
 public:
  Scanner(const RandomAccessFile& contents, const RecordFile& file, const RecordFormat& format,
          const ScanOptions& options, const std::function<absl::Status(const FoundRecord&)>& found)
      : total_(contents.size()),
        file_(file),
        format_(format),
        options_(options),
        found_(found),
        window_(contents, file.begin),
        line_(file.first_line),
        reported_(file.begin) {
    scratch_.features = Tensor(format.spec().features_dtype, format.spec().features_shape);
    scratch_.labels = Tensor(format.spec().labels_dtype, format.spec().labels_shape);
    if (format.has_weights()) scratch_.weights = Tensor(v1::DT_FLOAT, Shape({1}));
  }

  absl::StatusOr<ScanResult> Run() {
    while (!window_.at_end() || !window_.data().empty()) {
      absl::optional<RecordFormat::Piece> piece;
      if (!window_.data().empty()) piece = format_.NextPiece(window_.data(), window_.at_end());
      if (!piece.has_value()) {
        RETURN_IF_ERROR(window_.Grow());
        continue;
      }
      RETURN_IF_ERROR(Take(*piece));
    }
    Report(/*at_end=*/true);
    if (result_.damaged > left_out_) {
      LOG(WARNING) << file_.path << ": " << result_.damaged - left_out_ << " damaged records left out, "
                   << result_.records << " good ones";
    }
    if (left_out_ > 0) {
      LOG(INFO) << file_.path << ": " << left_out_ << " records left out as configured, " << result_.records << " kept";
    }
    return result_;
  }

 private:
  absl::Status Take(const RecordFormat::Piece& piece) {
    size_t next = piece.next;
    if (piece.kind == RecordFormat::Kind::kDamaged) {
      const size_t size = std::min(next, window_.data().size());
      RETURN_IF_ERROR(LeaveOut(absl::DataLossError(piece.damage), 0, size));
    } else if (piece.kind == RecordFormat::Kind::kRecord) {
      const absl::string_view text = window_.data().substr(piece.begin, piece.size);
      const ExampleSlot slot = SlotOf(format_.spec(), 0, &scratch_);
      const absl::Status status = format_.Parse(text, slot);
      if (status.ok()) {
        const FoundRecord record = {window_.offset() + piece.begin, piece.size, ParsedCrc32c(format_.spec(), slot),
                                    /*is_example=*/true};
        RETURN_IF_ERROR(found_(record));
        ++result_.records;
        std::string checksum;
        AppendLittleEndian<uint32_t>(&checksum, record.crc32c);
        result_.crc32c = ExtendCrc32c(result_.crc32c, checksum);
        if (slot.label != nullptr) result_.max_label = std::max<int64_t>(result_.max_label, *slot.label);
      } else {
        size_t end = piece.begin + piece.size;
        // A stray quote may have merged several valid lines into one record, so only the first line is skipped.
        const size_t line_end = window_.data().find('\n');
        if (format_.is_text() && !IsLeftOut(status) && line_end != absl::string_view::npos && line_end < end) {
          next = line_end + 1;
          end = line_end;
        }
        RETURN_IF_ERROR(LeaveOut(status, piece.begin, end - piece.begin));
      }
    }
    if (next == absl::string_view::npos) {
      window_.AdvanceToEnd();
    } else {
      Skip(next);
    }
    Report(/*at_end=*/false);
    return absl::OkStatus();
  }

  void Skip(size_t n) {
    if (format_.is_text()) {
      const absl::string_view passed = window_.data().substr(0, n);
      line_ += std::count(passed.begin(), passed.end(), '\n');
    }
    window_.Advance(n);
  }

  // Handles a record at `begin` in the window that holds no example. `why` is the reason.
  absl::Status LeaveOut(const absl::Status& why, size_t begin, size_t size) {
    if (IsLeftOut(why)) {
      ++left_out_;
    } else {
      const std::string message = format_.is_text()
                                      ? absl::StrCat(file_.path, ":", line_, ": ", why.message())
                                      : absl::StrCat(file_.path, ": record ", result_.records + result_.damaged,
                                                     " at byte ", window_.offset(), ": ", why.message());
      if (options_.on_damage == config::v1::InputConfig::FAIL) return absl::DataLossError(message);
      if (result_.damaged - left_out_ < kLoggedDamages) LOG(WARNING) << Printable(message) << "; left out";
    }
    ++result_.damaged;
    return found_({window_.offset() + begin, size, 0, /*is_example=*/false});
  }

  void Report(bool at_end) {
    if (!options_.progress || (!at_end && window_.offset() < reported_ + kProgressBytes)) return;
    reported_ = window_.offset();
    options_.progress({file_.path, window_.offset(), total_});
  }

  const uint64_t total_;
  const RecordFile& file_;
  const RecordFormat& format_;
  const ScanOptions& options_;
  const std::function<absl::Status(const FoundRecord&)>& found_;
  Window window_;
  int64_t line_;
  uint64_t reported_;
  Batch scratch_;
  ScanResult result_;
  // Number of records that the format leaves out.
  int64_t left_out_ = 0;
};

}  // namespace

absl::StatusOr<ScanResult> ScanRecords(const RandomAccessFile& contents, const RecordFile& file,
                                       const RecordFormat& format, const ScanOptions& options,
                                       const std::function<absl::Status(const FoundRecord&)>& found) {
  return Scanner(contents, file, format, options, found).Run();
}

}  // namespace lockstep
