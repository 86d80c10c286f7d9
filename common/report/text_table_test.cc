#include "lockstep/common/report/text_table.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(TextTableTest, AlignsColumnsWithoutTrailingSpaces) {
  TextTable table({{"NAME"}, {"SIZE", TextTable::kRight}, {"REMARK"}});
  table.AddRow({"hidden1/kernel", "401408", "new"});
  table.AddRow({"b", "7"});
  EXPECT_EQ(table.Render(),
            "NAME              SIZE  REMARK\n"
            "hidden1/kernel  401408  new\n"
            "b                    7\n");
}

TEST(TextTableTest, AlignsByCharacters) {
  TextTable table({{"NAME"}, {"N", TextTable::kRight}});
  table.AddRow({"m\xC3\xB6wen", "4"});
  table.AddRow({"emus", "5"});
  EXPECT_EQ(table.Render(), "NAME   N\nm\xC3\xB6wen  4\nemus   5\n");
}

TEST(TextTableTest, ShowsTheTitlesOfAnEmptyTable) {
  EXPECT_EQ(TextTable({{"A"}, {"LONG", TextTable::kRight}}).Render(), "A  LONG\n");
}

}  // namespace
}  // namespace lockstep
