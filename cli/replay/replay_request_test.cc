#include "lockstep/cli/replay/replay_request.h"

#include <sstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ReplayRequestTest, WordsMakeTheSameRequest) {
  const std::vector<std::string> lines[] = {
      {"--logdir=/run", "--steps=3..6", "--dump=/state", "--set=a=1", "--set=b=2"},
      {"--logdir=/run", "--step=4", "--slot=0"},
  };
  for (const std::vector<std::string>& words : lines) {
    ReplayRequest request;
    std::ostringstream output;
    EXPECT_FALSE(request.Parse(words, output, output).has_value()) << output.str();
    EXPECT_EQ(request.ToWords(), words);
  }
}

TEST(ReplayRequestTest, WordsHaveAbsolutePaths) {
  ReplayRequest request;
  std::ostringstream output;
  EXPECT_FALSE(request.Parse({"--logdir=run", "--step=4", "--slot=0", "--dump=a/b"}, output, output).has_value());
  const std::vector<std::string> words = request.ToWords();
  EXPECT_TRUE(absl::StartsWith(words.front(), "--logdir=/") && absl::EndsWith(words.front(), "/run")) << words.front();
  EXPECT_TRUE(absl::StartsWith(words.back(), "--dump=/") && absl::EndsWith(words.back(), "/a/b")) << words.back();
}

}  // namespace
}  // namespace lockstep
