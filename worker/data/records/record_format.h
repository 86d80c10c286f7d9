#ifndef LOCKSTEP_WORKER_DATA_RECORDS_RECORD_FORMAT_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_RECORD_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep {

// The memory for one parsed example. Members that are not in its ExampleSpec are null.
struct ExampleSlot {
  // The example has as many features as features_shape has elements: DT_FLOAT in `features`, or DT_INT32 in `ids`.
  float* features = nullptr;
  int32_t* ids = nullptr;
  // Either a class, or as many targets as labels_shape has elements.
  int32_t* label = nullptr;
  float* targets = nullptr;
  float* weight = nullptr;
};

// A format of record files: splits a file into records and parses them. Constant, thread-safe.
class RecordFormat {
 public:
  enum class Kind { kRecord, kBlank, kDamaged };

  // A part of a file. Positions are relative to the start of the data passed to NextPiece.
  struct Piece {
    Kind kind = Kind::kRecord;
    // The contents, for Parse.
    size_t begin = 0;
    size_t size = 0;
    // Start of the next piece, or npos if the damage makes the rest of the file unreadable.
    size_t next = 0;
    // Describes the damage of a kDamaged piece, without the file's name.
    std::string damage = {};
  };

  virtual ~RecordFormat() = default;

  // In the returned spec, `classes` is 0 if it can only be determined from the labels of the whole file.
  const ExampleSpec& spec() const { return spec_; }
  bool has_weights() const { return has_weights_; }
  // False if labels are optional and the files have none. Then all labels are 0, of one class.
  bool has_labels() const { return has_labels_; }
  // A string that changes whenever files would be read differently.
  const std::string& fingerprint() const { return fingerprint_; }

  // If true, error messages contain line numbers, and only the unreadable line is skipped.
  virtual bool is_text() const = 0;

  // Returns the first piece of `data`, which must not be empty, or nullopt if it needs more of the file. Never returns
  // nullopt if `at_end`.
  virtual absl::optional<Piece> NextPiece(absl::string_view data, bool at_end) const = 0;

  // Parses a record into `out`. Errors: DataLoss describes the damage, without the file's name; LeftOut.
  virtual absl::Status Parse(absl::string_view record, const ExampleSlot& out) const = 0;

  // Adds the properties of the training split that parsing uses.
  virtual void AddPreparation(v1::DataDigest* digest) const {}

  // Returns the name of the column that identifies rows, or an empty string if there is none.
  virtual std::string id_name() const { return ""; }
  // Returns a record's text in that column, or an empty string if a damaged record has none.
  virtual std::string IdOf(absl::string_view record) const { return ""; }

 protected:
  RecordFormat(const ExampleSpec& spec, bool has_weights, std::string fingerprint, bool has_labels = true);

 private:
  const ExampleSpec spec_;
  const bool has_weights_;
  const bool has_labels_;
  const std::string fingerprint_;
};

// Returns the status for a valid record that the configuration excludes.
absl::Status LeftOut();
bool IsLeftOut(const absl::Status& status);

// Returns `text` without a leading UTF-8 byte order mark. Any file may begin with one, and so may any part of a file
// that was concatenated with `cat`.
absl::string_view WithoutByteOrderMark(absl::string_view text);

// Implements NextPiece for lines that end in LF or CR LF. The last line may lack its line end. Lines without a visible
// character are blank.
absl::optional<RecordFormat::Piece> NextLine(absl::string_view data, bool at_end);

// Returns the CRC32C of a parsed record: features, label or targets, weight.
uint32_t ParsedCrc32c(const ExampleSpec& spec, const ExampleSlot& parsed);

// Returns the memory for example `i` of a batch.
ExampleSlot SlotOf(const ExampleSpec& spec, int64_t i, Batch* batch);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_RECORD_FORMAT_H_
