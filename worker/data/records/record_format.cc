#include "lockstep/worker/data/records/record_format.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/io/crc32c.h"

namespace lockstep {
namespace {

constexpr size_t kMaxLineBytes = 64 << 20;

}  // namespace

RecordFormat::RecordFormat(const ExampleSpec& spec, bool has_weights, std::string fingerprint, bool has_labels)
    : spec_(spec), has_weights_(has_weights), has_labels_(has_labels), fingerprint_(std::move(fingerprint)) {}

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  return absl::StartsWith(text, "\xEF\xBB\xBF") ? text.substr(3) : text;
}

absl::Status LeftOut() { return absl::FailedPreconditionError("left out"); }
bool IsLeftOut(const absl::Status& status) { return absl::IsFailedPrecondition(status); }

absl::optional<RecordFormat::Piece> NextLine(absl::string_view data, bool at_end) {
  RecordFormat::Piece piece;
  const size_t end = data.find('\n');
  if (end == absl::string_view::npos) {
    if (!at_end && data.size() < kMaxLineBytes) return absl::nullopt;
    piece.next = data.size();
    piece.size = data.size();
    if (!at_end) {
      piece.kind = RecordFormat::Kind::kDamaged;
      piece.damage = absl::StrCat("a line of more than ", kMaxLineBytes, " bytes");
      return piece;
    }
  } else {
    piece.next = end + 1;
    piece.size = end;
  }
  if (piece.size > 0 && data[piece.size - 1] == '\r') --piece.size;
  if (absl::StripAsciiWhitespace(data.substr(0, piece.size)).empty()) piece.kind = RecordFormat::Kind::kBlank;
  return piece;
}

uint32_t ParsedCrc32c(const ExampleSpec& spec, const ExampleSlot& parsed) {
  uint32_t crc = 0;
  // Floats, ids and classes have the same size. Members that are not in the spec are null.
  const auto extend = [&crc](const void* elements, int64_t count) {
    if (elements == nullptr) return;
    crc = ExtendCrc32c(crc, {static_cast<const char*>(elements), sizeof(float) * static_cast<size_t>(count)});
  };
  extend(parsed.features, spec.features_shape.num_elements());
  extend(parsed.ids, spec.features_shape.num_elements());
  extend(parsed.label, 1);
  extend(parsed.targets, spec.labels_shape.num_elements());
  extend(parsed.weight, 1);
  return crc;
}

ExampleSlot SlotOf(const ExampleSpec& spec, int64_t i, Batch* batch) {
  ExampleSlot slot;
  const int64_t features = spec.features_shape.num_elements();
  if (spec.features_dtype == v1::DT_FLOAT) {
    slot.features = batch->features.flat<float>().data() + i * features;
  } else {
    slot.ids = batch->features.flat<int32_t>().data() + i * features;
  }
  if (spec.labels_dtype == v1::DT_FLOAT) {
    slot.targets = batch->labels.flat<float>().data() + i * spec.labels_shape.num_elements();
  } else {
    slot.label = batch->labels.flat<int32_t>().data() + i;
  }
  if (batch->weights.num_elements() > 0) slot.weight = batch->weights.flat<float>().data() + i;
  return slot;
}

}  // namespace lockstep
