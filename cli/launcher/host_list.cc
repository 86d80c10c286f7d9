#include "lockstep/cli/launcher/host_list.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// A bracketed part of an item and the text before it: "a[1-2]" is {"a", {"1", "2"}}.
struct Dimension {
  std::string prefix;
  std::vector<std::string> numbers;
};

absl::Status Wrong(absl::string_view item, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the host list's \"", item, "\" ", why));
}

// Splits a list at the commas and blanks that are outside brackets.
std::vector<absl::string_view> Items(absl::string_view list) {
  std::vector<absl::string_view> items;
  size_t begin = 0;
  bool in_bracket = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    const bool ends = i == list.size() || (!in_bracket && (list[i] == ',' || list[i] == ' ' || list[i] == '\t'));
    if (ends) {
      if (i > begin) items.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '[' || list[i] == ']') {
      in_bracket = list[i] == '[';
    }
  }
  return items;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

// Appends the numbers that "7" or "08-12" stands for.
absl::Status AppendRange(absl::string_view item, absl::string_view range, std::vector<std::string>* numbers) {
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  // Slurm reads "7-" as 7.
  const absl::string_view last = ends.second.empty() ? ends.first : ends.second;
  int64_t from = 0, to = 0;
  if (!IsNumber(ends.first) || !IsNumber(last) || !absl::SimpleAtoi(ends.first, &from) ||
      !absl::SimpleAtoi(last, &to)) {
    return Wrong(item, absl::StrCat("has \"", range, "\" in brackets, must be a number or a range such as 1-8"));
  }
  if (from > to) return Wrong(item, absl::StrCat("has the range ", range, ", which ends before it begins"));
  if (to - from >= kMaxHosts) return Wrong(item, absl::StrCat("has more than ", kMaxHosts, " hosts"));
  for (int64_t number = from; number <= to; ++number) {
    const std::string digits = absl::StrCat(number);
    const size_t width = std::max(digits.size(), ends.first.size());
    numbers->push_back(std::string(width - digits.size(), '0') + digits);
  }
  return absl::OkStatus();
}

// Splits an item into its bracketed parts, each with the text before it. An item without brackets yields one dimension
// without numbers.
absl::StatusOr<std::vector<Dimension>> Dimensions(absl::string_view item) {
  std::vector<Dimension> dimensions;
  absl::string_view rest = item;
  while (!rest.empty()) {
    Dimension dimension;
    const size_t open = std::min(rest.find('['), rest.size());
    dimension.prefix = std::string(rest.substr(0, open));
    if (dimension.prefix.find(']') != std::string::npos) return Wrong(item, "has a ] without a [");
    if (open == rest.size()) {
      if (!dimensions.empty()) return Wrong(item, "has text after its last bracket");
      dimensions.push_back(std::move(dimension));
      break;
    }
    const size_t close = rest.find(']', open);
    if (close == absl::string_view::npos) return Wrong(item, "has a [ without a ]");
    for (const absl::string_view range : absl::StrSplit(rest.substr(open + 1, close - open - 1), ',')) {
      RETURN_IF_ERROR(AppendRange(item, range, &dimension.numbers));
    }
    dimensions.push_back(std::move(dimension));
    rest.remove_prefix(close + 1);
  }
  return dimensions;
}

// Appends the hosts of an item in Slurm's order: the last bracket varies fastest, then the first, the second, ...
void AppendHosts(const std::vector<Dimension>& dimensions, std::vector<std::string>* hosts) {
  const size_t count = dimensions.size();
  std::vector<size_t> at(count, 0);
  while (true) {
    std::string host;
    for (size_t i = 0; i < count; ++i) {
      host += dimensions[i].prefix;
      if (!dimensions[i].numbers.empty()) host += dimensions[i].numbers[at[i]];
    }
    hosts->push_back(std::move(host));
    size_t turn = 0;
    for (; turn < count; ++turn) {
      const size_t i = turn == 0 ? count - 1 : turn - 1;
      if (++at[i] < dimensions[i].numbers.size()) break;
      at[i] = 0;
    }
    if (turn == count) return;
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseHostList(absl::string_view list) {
  std::vector<std::string> hosts;
  for (const absl::string_view item : Items(list)) {
    ASSIGN_OR_RETURN(const std::vector<Dimension> dimensions, Dimensions(item));
    size_t added = 1;
    for (const Dimension& dimension : dimensions) {
      added *= std::max<size_t>(1, dimension.numbers.size());
      if (hosts.size() + added > kMaxHosts) return Wrong(item, absl::StrCat("makes more than ", kMaxHosts, " hosts"));
    }
    AppendHosts(dimensions, &hosts);
  }
  return hosts;
}

}  // namespace lockstep
