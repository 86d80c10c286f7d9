// Runs every fuzz target on its seeds and on the inputs found by fuzzing (corpus/TARGET), with each compiler and
// sanitizer that the other tests use.
#include <string>

#include "glog/logging.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"

namespace lockstep {
namespace {

class CorpusTest : public ::testing::TestWithParam<std::string> {
 protected:
  CorpusTest() {
    FLAGS_minloglevel = google::GLOG_FATAL;
    google::protobuf::SetLogHandler(nullptr);
  }
  const FuzzTarget& target_ = *FuzzTarget::Find(GetParam());
};

TEST_P(CorpusTest, TakesItsSeeds) {
  const std::vector<std::string> seeds = target_.Seeds();
  EXPECT_FALSE(seeds.empty());
  for (size_t i = 0; i < seeds.size(); ++i) {
    EXPECT_LE(seeds[i].size(), target_.longest()) << "seed " << i;
    EXPECT_TRUE(target_.Run(seeds[i])) << "seed " << i;
  }
}

// Truncates valid inputs to every length, and changes each of their bytes.
TEST_P(CorpusTest, SurvivesDamagedSeeds) {
  for (const std::string& seed : target_.Seeds()) {
    if (seed.size() > 600) continue;
    for (size_t size = 0; size < seed.size(); ++size) target_.Run(absl::string_view(seed).substr(0, size));
    for (size_t i = 0; i < seed.size(); ++i) {
      std::string damaged = seed;
      for (const char change : {'\x01', '\x80', '\xff'}) {
        damaged[i] = static_cast<char>(seed[i] ^ change);
        target_.Run(damaged);
      }
    }
  }
}

TEST_P(CorpusTest, SurvivesFindingsOfFuzzing) {
  const std::string folder = "tests/fuzz/corpus/" + GetParam();
  const auto names = FileSystem::Real()->ListDirectory(folder);
  if (absl::IsNotFound(names.status())) return;  // fuzzing has found nothing
  ASSERT_TRUE(names.ok()) << names.status();
  for (const std::string& name : *names) {
    const auto input = ReadFile(FileSystem::Real(), JoinPath(folder, name));
    ASSERT_TRUE(input.ok()) << input.status();
    SCOPED_TRACE(name);
    target_.Run(*input);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, ::testing::ValuesIn(FuzzTarget::Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep
