#include "lockstep/common/report/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

size_t WidthOf(const std::string& text) {
  // Every code point has one byte that does not continue another.
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  CHECK_LE(cells.size(), columns_.size()) << "a row has more cells than the table has columns";
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::Render() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::vector<size_t> widths(columns_.size());
  std::vector<const std::vector<std::string>*> lines = {&titles};
  for (const auto& row : rows_) lines.push_back(&row);
  for (const auto* line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], WidthOf((*line)[i]));
  }

  std::string out;
  for (const auto* line : lines) {
    std::string text;
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string padding(widths[i] - WidthOf((*line)[i]), ' ');
      const bool right = columns_[i].alignment == kRight;
      absl::StrAppend(&text, i == 0 ? "" : "  ", right ? padding : "", (*line)[i], right ? "" : padding);
    }
    absl::StripTrailingAsciiWhitespace(&text);
    absl::StrAppend(&out, text, "\n");
  }
  return out;
}

}  // namespace lockstep
