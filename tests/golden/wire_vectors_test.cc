// Reads the golden vectors from docs/wire.md, and compares each row with what the code computes.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/contract/gradient_digest.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/permutation.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

// A row of the table: | function | arguments | result |
struct Row {
  std::string function;
  Words arguments;
  std::string result;
};

std::vector<Row> Rows() {
  std::ifstream page("docs/wire.md");
  std::vector<Row> rows;
  bool within = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "#")) within = line == "### Golden vectors";
    if (!within || !absl::StartsWith(line, "| `")) continue;
    const Words columns = absl::StrSplit(absl::StripSuffix(absl::StripPrefix(line, "| "), " |"), " | ");
    if (columns.size() == 3) rows.push_back({columns[0], absl::StrSplit(columns[1], ", "), columns[2]});
  }
  return rows;
}

int64_t Integer(const std::string& text) {
  int64_t value = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << text;
  return value;
}

uint64_t Hex(const std::string& text) {
  uint64_t value = 0;
  EXPECT_TRUE(absl::SimpleHexAtoi(text, &value)) << text;
  return value;
}

std::string Hex64(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

std::string Text(const Philox::Block& block) {
  return absl::StrJoin(block, ", ",
                       [](std::string* out, uint32_t word) { absl::StrAppend(out, absl::Hex(word, absl::kZeroPad8)); });
}

// Returns the first ten examples of an epoch.
std::string Order(const Permutation& permutation) {
  std::vector<int64_t> order;
  for (int64_t place = 0; place < std::min<int64_t>(permutation.size(), 10); ++place) {
    order.push_back(permutation.At(place));
  }
  return absl::StrJoin(order, ", ");
}

std::string Digest(const Words& elements) {
  std::vector<float> values(elements.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<uint32_t>(Hex(elements[i]));
    std::memcpy(&values[i], &bits, sizeof(bits));
  }
  return Hex64(GradientDigest(values));
}

// Returns the digest of one variable with one dimension.
std::string InitialValuesDigest(const std::string& name, const Words& arguments) {
  std::string content;
  for (size_t i = 2; i < arguments.size(); ++i) {
    AppendLittleEndian<uint32_t>(&content, static_cast<uint32_t>(Hex(arguments[i])));
  }
  VariablesDigest digest;
  digest.Begin(name, v1::DT_FLOAT, {Integer(arguments.at(1))}, content.size());
  digest.AddContent(content);
  return digest.Hex();
}

std::string Compute(const Row& row) {
  const Words& a = row.arguments;
  const auto unquoted = [](const std::string& text) { return text.substr(1, text.size() - 2); };
  if (row.function == "`hash`") return Hex64(StableHash(unquoted(a.at(0)), Hex(a.at(1))));
  if (row.function == "`philox`") return Text(Philox(Hex(a.at(0)), Hex(a.at(1))).At(Hex(a.at(2))));
  if (row.function == "`of_slot`") {
    return Text(Philox::ForSlot(Hex(a.at(0)), unquoted(a.at(1)), Integer(a.at(2)), Integer(a.at(3))).At(0));
  }
  if (row.function == "`order`") return Order(Permutation(Integer(a.at(0)), Hex(a.at(1)), Integer(a.at(2))));
  if (row.function == "`digest`") return Digest(a);
  if (row.function == "`initial_values`") return InitialValuesDigest(unquoted(a.at(0)), a);
  return "not a function of this test";
}

TEST(WireVectorsTest, PageStatesComputedValues) {
  std::vector<std::string> functions;
  for (const Row& row : Rows()) {
    EXPECT_EQ(row.result, Compute(row)) << row.function << " " << absl::StrJoin(row.arguments, ", ");
    if (functions.empty() || functions.back() != row.function) functions.push_back(row.function);
  }
  EXPECT_EQ(absl::StrJoin(functions, " "), "`hash` `philox` `of_slot` `order` `digest` `initial_values`");
}

}  // namespace
}  // namespace lockstep
