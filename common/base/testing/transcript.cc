#include "lockstep/common/base/testing/transcript.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr char kTitle[] = "== ";
constexpr char kArrow[] = "-> ";
// The column in which effects begin, unless the event is longer.
constexpr size_t kColumn = 32;

bool rewriting = false;

// Appends an event with its effects to the lines of a scene.
void AppendEvent(absl::string_view event, absl::string_view effects, std::vector<std::string>* lines) {
  std::string head(event);
  for (absl::string_view effect : absl::StrSplit(effects, '\n', absl::SkipEmpty())) {
    head.resize(std::max(head.size() + 1, kColumn), ' ');
    lines->push_back(absl::StrCat(head, kArrow, effect));
    head.clear();
  }
  if (!head.empty()) lines->push_back(head);
}

// Returns the lines of a scene with the effects that its events have now.
std::vector<std::string> PlayScene(const std::vector<std::string>& lines, const TranscriptMachine& machine) {
  std::vector<std::string> played;
  int events = 0;
  for (const std::string& line : lines) {
    const absl::string_view event = absl::StripAsciiWhitespace(absl::string_view(line).substr(0, line.find(kArrow)));
    if (event.empty() && !line.empty()) continue;  // a further effect
    if (event.empty() || line[0] == '#' || absl::StartsWith(line, kTitle)) {
      played.push_back(line);
    } else {
      SCOPED_TRACE(event);
      ++events;
      AppendEvent(event, machine(event), &played);
    }
  }
  EXPECT_TRUE(events > 0 || !absl::StartsWith(lines[0], kTitle)) << "a scene without an event";
  return played;
}

}  // namespace

void PlayTranscript(const std::string& path, const std::function<TranscriptMachine()>& start) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::vector<std::string>> scenes(1);  // the first one holds the lines before all titles
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (absl::StartsWith(line, kTitle)) scenes.emplace_back();
    scenes.back().emplace_back(line);
  }
  ASSERT_GT(scenes.size(), 1) << path << " has no scene";
  std::string rewritten;
  for (const std::vector<std::string>& scene : scenes) {
    if (scene.empty()) continue;  // There are no lines before the first title.
    SCOPED_TRACE(absl::StrCat(path, ": ", scene.front()));
    const std::string played = absl::StrCat(absl::StrJoin(PlayScene(scene, start()), "\n"), "\n");
    if (!rewriting) {
      EXPECT_EQ(absl::StrCat(absl::StrJoin(scene, "\n"), "\n"), played);
    }
    rewritten += played;
  }
  if (rewriting) {
    const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    ASSERT_NE(workspace, nullptr) << "--rewrite needs `bazel run`";
    std::ofstream out(absl::StrCat(workspace, "/", path), std::ios::binary);
    out << rewritten;
    ASSERT_TRUE(out.flush()) << path;
  }
}

}  // namespace lockstep

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  lockstep::rewriting = std::find(argv, argv + argc, absl::string_view("--rewrite")) != argv + argc;
  return RUN_ALL_TESTS();
}
