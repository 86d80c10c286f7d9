#include "lockstep/worker/data/csv/csv_order.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using Places = absl::flat_hash_map<std::string, int64_t>;

// Maps each name to its index. Returns an empty map if a name is empty or repeated.
Places PlacesOf(const std::vector<std::string>& names) {
  Places places;
  for (const std::string& name : names) {
    if (name.empty() || !places.emplace(name, static_cast<int64_t>(places.size())).second) return {};
  }
  return places;
}

std::string Quoted(const std::vector<std::string>& names, size_t i) {
  return i < names.size() ? absl::StrCat("\"", names[i], "\"") : "absent";
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> PlacesLike(const CsvOrder& reference, const CsvOrder& file,
                                                std::vector<std::string> CsvOrder::*of, const char* kind) {
  const std::vector<std::string>& names = file.*of;
  const std::vector<std::string>& expected = reference.*of;
  std::vector<int64_t> places(names.size());
  std::iota(places.begin(), places.end(), 0);
  if (names == expected) return places;
  const Places own = PlacesOf(names), wanted = PlacesOf(expected);
  if (own.empty() || wanted.empty()) return places;
  const bool are_same =
      names.size() == expected.size() &&
      std::all_of(names.begin(), names.end(), [&](const auto& name) { return wanted.contains(name); });
  if (are_same) {
    for (size_t i = 0; i < names.size(); ++i) places[i] = wanted.at(names[i]);
    return places;
  }
  for (size_t i = 0; i < std::max(names.size(), expected.size()); ++i) {
    if (i < names.size() && i < expected.size() && names[i] == expected[i]) continue;
    const bool is_elsewhere =
        (i < names.size() && wanted.contains(names[i])) || (i < expected.size() && own.contains(expected[i]));
    if (!is_elsewhere && file.configured != reference.configured) continue;
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": the column of ", kind, " ", i, " is ",
                                                   Quoted(names, i), "; in ", reference.path,
                                                   ", whose order is the model's, it is ", Quoted(expected, i)));
  }
  return places;
}

}  // namespace lockstep
