#include "lockstep/worker/data/csv/csv_fields.h"

namespace lockstep {

bool CsvFields::Next(absl::string_view* field) {
  if (at_end_ || damaged_) return false;
  const size_t start = PaddingBeforeQuote(rest_, separator_);
  if (start < rest_.size() && rest_[start] == '"') {
    rest_.remove_prefix(start);
    return NextQuoted(field);
  }
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
    size_t next = quote + 1;
    if (next < rest_.size() && rest_[next] == '"') {
      unquoted_.push_back('"');
      start = next + 1;
      continue;
    }
    while (next < rest_.size() && IsCsvPadding(rest_[next], separator_)) ++next;
    if (next < rest_.size() && rest_[next] != separator_) break;
    at_end_ = next == rest_.size();
    rest_.remove_prefix(at_end_ ? next : next + 1);
    *field = unquoted_;
    return true;
  }
  damaged_ = true;
  return false;
}

bool IsCsvPadding(char c, char separator) { return (c == ' ' || c == '\t') && c != separator; }

size_t PaddingBeforeQuote(absl::string_view text, char separator) {
  size_t padding = 0;
  while (padding < text.size() && IsCsvPadding(text[padding], separator)) ++padding;
  return padding;
}

size_t CsvRecordEnd(absl::string_view data, char separator) {
  enum { kFieldStart, kPlain, kQuoted, kQuoteInQuoted } state = kFieldStart;
  for (size_t i = 0; i < data.size(); ++i) {
    const char c = data[i];
    if (state == kQuoted) {
      if (c == '"') state = kQuoteInQuoted;
    } else if (c == '\n') {
      return i;
    } else if (c == separator) {
      state = kFieldStart;
    } else if (c == '"' && state != kPlain) {
      // The quote begins a quoted field, or is the second one of a pair.
      state = kQuoted;
    } else if (state != kFieldStart || !IsCsvPadding(c, separator)) {
      state = kPlain;
    }
  }
  return state == kQuoted ? absl::string_view::npos : data.size();
}

}  // namespace lockstep
