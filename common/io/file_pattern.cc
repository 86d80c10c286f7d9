#include "lockstep/common/io/file_pattern.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Takes time at most proportional to the product of both lengths, because only the last star is ever retried.
bool Matches(absl::string_view name, absl::string_view pattern) {
  size_t n = 0, p = 0, after_star = absl::string_view::npos, tried = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      tried = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (after_star != absl::string_view::npos) {
      p = after_star;
      n = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == absl::string_view::npos;
}

}  // namespace

bool IsFilePattern(absl::string_view path) { return Basename(path).find_first_of("*?") != absl::string_view::npos; }

absl::StatusOr<std::vector<std::string>> MatchFiles(FileSystem* fs, const std::string& path) {
  if (!IsFilePattern(path)) return std::vector<std::string>{path};
  const absl::string_view pattern = Basename(path);
  const std::string before = path.substr(0, path.size() - pattern.size());
  const absl::StatusOr<std::vector<std::string>> names = fs->ListDirectory(std::string(Dirname(path)));
  if (absl::IsNotFound(names.status())) {
    return absl::NotFoundError(absl::StrCat("no file matches ", path, WhyAbsent(fs, path)));
  }
  RETURN_IF_ERROR(names.status());
  std::vector<std::string> matching;
  for (const std::string& name : *names) {
    const bool is_hidden = absl::StartsWith(name, ".") && !absl::StartsWith(pattern, ".");
    if (!is_hidden && Matches(name, pattern)) matching.push_back(before + name);
  }
  if (!matching.empty()) return matching;
  return absl::NotFoundError(absl::StrCat("no file matches ", path, WhyAbsent(fs, path)));
}

std::string WhyAbsent(FileSystem* fs, const std::string& path) {
  std::string absent;
  for (std::string directory(Dirname(path));; directory = std::string(Dirname(directory))) {
    const absl::StatusOr<std::vector<std::string>> names = fs->ListDirectory(directory);
    if (names.ok() && absent.empty()) {
      return names->empty() ? absl::StrCat(": ", directory, " is empty; is a volume to be mounted there?") : "";
    }
    if (!absl::IsNotFound(names.status())) break;
    absent = directory;
    if (Dirname(directory) == directory || directory == ".") break;
  }
  return absent.empty() ? "" : absl::StrCat(": there is no directory ", absent, "; is a volume to be mounted there?");
}

}  // namespace lockstep
