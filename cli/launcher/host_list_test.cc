#include "lockstep/cli/launcher/host_list.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(const std::string& list) {
  const auto hosts = ParseHostList(list);
  EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument) << list;
  return std::string(hosts.status().message());
}

// Each line of the file is "LIST => HOST HOST ..." or "LIST => invalid", written by Slurm's scontrol.
TEST(HostListTest, AgreesWithScontrolOnEveryList) {
  std::ifstream file("tests/golden/host_lists.txt");
  int lists = 0, invalid = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> sides = absl::StrSplit(line, " => ");
    ASSERT_EQ(sides.size(), 2) << line;
    const auto hosts = ParseHostList(sides[0]);
    EXPECT_EQ(hosts.ok() ? absl::StrJoin(*hosts, " ") : "invalid", sides[1]) << sides[0] << hosts.status();
    ++lists;
    if (!hosts.ok()) ++invalid;
  }
  EXPECT_EQ(lists, 500);
  EXPECT_GE(invalid, 20);
}

TEST(HostListTest, EmptyListHasNoHosts) {
  for (const char* list : {"", ",", " , "}) EXPECT_THAT(*ParseHostList(list), IsEmpty()) << list;
  EXPECT_THAT(*ParseHostList("b,a,b"), ElementsAre("b", "a", "b"));
}

TEST(HostListTest, ErrorsNameTheItemAndTheProblem) {
  EXPECT_EQ(ErrorOf("b,a[1-x]"),
            "the host list's \"a[1-x]\" has \"1-x\" in brackets, must be a number or a range such as 1-8");
  EXPECT_THAT(ErrorOf("a[]"), HasSubstr("has \"\" in brackets"));
  EXPECT_THAT(ErrorOf("a[3-1]"), HasSubstr("has the range 3-1, which ends before it begins"));
  EXPECT_THAT(ErrorOf("a[1-2]b"), HasSubstr("has text after its last bracket"));
  // Slurm 22.05 accepts both: it reads the first as the host "a]", and leaves the second unchanged.
  EXPECT_THAT(ErrorOf("a[1-2"), HasSubstr("has a [ without a ]"));
  EXPECT_THAT(ErrorOf("a]1"), HasSubstr("has a ] without a ["));
}

TEST(HostListTest, RefusesMoreThanTheMostHosts) {
  EXPECT_EQ(ParseHostList("a[0-65535]")->size(), kMaxHosts);
  for (const char* list : {"a[0-65536]", "a[0-65535],b", "a[0-999]b[0-999]", "a[0-9]b[0-9999999999]",
                           "a[0-9999]b[0-9999]c[0-9999]d[0-9999]e[0-9999]"}) {
    EXPECT_THAT(ErrorOf(list), HasSubstr("65536 hosts")) << list;
  }
}

}  // namespace
}  // namespace lockstep
