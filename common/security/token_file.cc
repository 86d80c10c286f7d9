#include "lockstep/common/security/token_file.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kLeastCharacters = 16;

bool IsVisible(char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); }

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadTokens(FileSystem* fs, const std::string& path) {
  const auto text = ReadFile(fs, path);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("--token_file: ", text.status().message()));
  const auto wrong = [&path](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("--token_file: ", path, why));
  };
  std::vector<std::string> tokens;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (line.size() < kLeastCharacters || !std::all_of(line.begin(), line.end(), IsVisible)) {
      return wrong(absl::StrCat(":", number, ": a token has at least ", kLeastCharacters,
                                " visible characters; this one has ", line.size(), " bytes"));
    }
    tokens.emplace_back(line);
  }
  if (tokens.empty()) return wrong(": it has no token; write one in a line of its own");
  return tokens;
}

bool IsAmong(absl::string_view presented, const std::vector<std::string>& tokens) {
  bool found = false;
  for (const std::string& token : tokens) {
    // The length of a token is not a secret.
    if (token.size() != presented.size()) continue;
    found |= CRYPTO_memcmp(token.data(), presented.data(), token.size()) == 0;
  }
  return found;
}

}  // namespace lockstep
