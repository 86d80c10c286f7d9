#include "lockstep/worker/data/formats/csv_fields.h"

namespace lockstep {

bool CsvFields::Next(absl::string_view* field) {
  if (at_end_ || damaged_) return false;
  if (!rest_.empty() && rest_[0] == '"') return NextQuoted(field);
  const size_t end = rest_.find(separator_);
  *field = rest_.substr(0, end);
  at_end_ = end == absl::string_view::npos;
  rest_.remove_prefix(at_end_ ? rest_.size() : end + 1);
  return true;
}

bool CsvFields::NextQuoted(absl::string_view* field) {
  unquoted_.clear();
  for (size_t start = 1;;) {
    const size_t quote = rest_.find('"', start);
    if (quote == absl::string_view::npos) break;
    const absl::string_view part = rest_.substr(start, quote - start);
    unquoted_.append(part.data(), part.size());
    const size_t next = quote + 1;
    if (next < rest_.size() && rest_[next] == '"') {
      unquoted_.push_back('"');
      start = next + 1;
      continue;
    }
    if (next < rest_.size() && rest_[next] != separator_) break;
    at_end_ = next == rest_.size();
    rest_.remove_prefix(at_end_ ? next : next + 1);
    *field = unquoted_;
    return true;
  }
  damaged_ = true;
  return false;
}

}  // namespace lockstep
