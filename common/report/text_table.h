#ifndef LOCKSTEP_COMMON_REPORT_TEXT_TABLE_H_
#define LOCKSTEP_COMMON_REPORT_TEXT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// A text table. Each column is as wide as its widest cell, and columns are two spaces apart. Widths are in
// code points of UTF-8. Not thread-safe.
class TextTable {
 public:
  enum Alignment { kLeft, kRight };
  struct Column {
    std::string title;
    Alignment alignment = kLeft;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells at the end are empty; the row must not have more cells than there are columns.
  void AddRow(std::vector<std::string> cells);

  // Returns a line of titles, then the rows. Each line ends with a line feed and has no trailing spaces.
  std::string Render() const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_REPORT_TEXT_TABLE_H_
