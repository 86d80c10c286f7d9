#ifndef LOCKSTEP_COMMON_REPORT_TEXT_TABLE_H_
#define LOCKSTEP_COMMON_REPORT_TEXT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// A table for people: columns as wide as their widest cell, two spaces apart. Columns count bytes, so cells are to
// be ASCII. Not thread-safe.
class TextTable {
 public:
  enum Alignment { kLeft, kRight };
  struct Column {
    std::string title;
    Alignment alignment = kLeft;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells at the end are empty; further ones than there are columns are an error of the caller.
  void AddRow(std::vector<std::string> cells);

  // A line of titles, then the rows; each ends with a line feed and has no spaces before it.
  std::string Render() const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_REPORT_TEXT_TABLE_H_
