#include "lockstep/train/evaluation/class_report.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// The model recognizes 3 of 4 cats and 1 of 2 dogs. No example is an emu or is classified as one.
ClassReport Report(const std::vector<std::string>& names = {"cat", "dog", "e,mu"}) {
  MetricValue matrix;
  matrix.classes = 3;
  matrix.matrix = {3, 1, 0, 1, 1, 0, 0, 0, 0};
  return ReportClasses(matrix, names);
}

TEST(ClassReportTest, HasPrecisionRecallAndF1) {
  EXPECT_EQ(ClassReportText(Report()),
            "class  name  examples  precision  recall      f1\n"
            "    0  cat          4     0.7500  0.7500  0.7500\n"
            "    1  dog          2     0.5000  0.5000  0.5000\n"
            "    2  e,mu         0          -       -       -\n"
            " mean               6     0.6250  0.6250  0.6250\n");
}

TEST(ClassReportTest, TheFileHasTheMatrix) {
  EXPECT_EQ(ClassReportCsv(Report()),
            "class,name,examples,precision,recall,f1,as_0,as_1,as_2\n"
            "0,cat,4,0.75,0.75,0.75,3,1,0\n"
            "1,dog,2,0.5,0.5,0.5,1,1,0\n"
            "2,\"e,mu\",0,,,,0,0,0\n");
}

TEST(ClassReportTest, NamesMayBeMissing) { EXPECT_EQ(Report({"cat"}).classes[1].name, ""); }

}  // namespace
}  // namespace lockstep
