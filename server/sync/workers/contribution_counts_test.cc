#include "lockstep/server/sync/workers/contribution_counts.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::map<std::string, float> ValuesOf(const v1::Summary& summary) {
  std::map<std::string, float> values;
  for (const v1::Summary::Value& value : summary.value()) values[value.tag()] = value.simple_value();
  return values;
}

TEST(ContributionCountsTest, OfAllWorkersAndOfEach) {
  v1::RunStatus status;
  status.set_accepted(7);
  status.set_stale(2);
  v1::WorkerStatus* const worker = status.add_worker();
  worker->set_name("a");
  worker->set_accepted(3);
  worker->set_duplicate(1);
  worker->set_rejected(4);
  EXPECT_THAT(ValuesOf(ContributionCounts(status)),
              ElementsAre(Pair("contributions/a/accepted", 3), Pair("contributions/a/duplicate", 1),
                          Pair("contributions/a/rejected", 4), Pair("contributions/a/stale", 0),
                          Pair("contributions/accepted", 7), Pair("contributions/duplicate", 0),
                          Pair("contributions/rejected", 0), Pair("contributions/stale", 2)));
}

TEST(ContributionCountsTest, OfManyWorkersTheFirst) {
  v1::RunStatus status;
  for (int i = 0; i < 1000; ++i) status.add_worker()->set_name(absl::StrCat(i));
  EXPECT_EQ(ContributionCounts(status).value_size(), 4 * (1 + 64));
}

}  // namespace
}  // namespace lockstep
