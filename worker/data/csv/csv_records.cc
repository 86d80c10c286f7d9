#include "lockstep/worker/data/csv/csv_records.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "lockstep/common/report/quantity.h"

namespace lockstep {
namespace {

// A quoted field may span lines, but a missing closing quote must not swallow the rest of the file.
constexpr size_t kMaxQuotedBytes = 1 << 20;

}  // namespace

absl::optional<RecordFormat::Piece> CsvRecords::NextPiece(absl::string_view data, bool at_end) const {
  return NextCsvPiece(data, at_end, separator_);
}

absl::optional<RecordFormat::Piece> CsvRecords::NextCsvPiece(absl::string_view data, bool at_end, char separator) {
  absl::optional<Piece> line = NextLine(data, at_end);
  if (!line.has_value() || line->kind != Kind::kRecord) return line;
  const absl::string_view text = WithoutByteOrderMark(data);
  const size_t mark = data.size() - text.size();
  line->begin = mark;
  line->size -= mark;
  if (absl::StripAsciiWhitespace(text.substr(0, line->size)).empty()) line->kind = Kind::kBlank;
  if (!absl::StrContains(text.substr(0, line->size), '"')) return line;
  const size_t end = CsvRecordEnd(text.substr(0, kMaxQuotedBytes), separator);
  const bool is_whole = end < std::min(text.size(), kMaxQuotedBytes) || (end == text.size() && at_end);
  if (!is_whole) {
    if (!at_end && text.size() < kMaxQuotedBytes) return absl::nullopt;
    line->kind = Kind::kDamaged;
    line->damage = "a quoted field does not end";
    return line;
  }
  line->size = end > 0 && text[end - 1] == '\r' ? end - 1 : end;
  line->next = std::min(mark + end + 1, data.size());
  return line;
}

absl::Status WrongFieldCount(size_t found, size_t expected, char separator) {
  return absl::DataLossError(absl::StrCat(
      CountText(static_cast<int64_t>(found), "field"), ", expected ", expected,
      found > expected
          ? absl::StrCat("; a field with \"", absl::CHexEscape(std::string(1, separator)), "\" in it needs quotes")
          : ""));
}

}  // namespace lockstep
