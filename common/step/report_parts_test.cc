#include "lockstep/common/step/report_parts.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// The i-th slot's update values have sizes[0], sizes[1], ... bytes.
std::vector<v1::SlotReport> Reports(int64_t slots, const std::vector<size_t>& sizes) {
  std::vector<v1::SlotReport> reports(slots);
  for (int64_t slot = 0; slot < slots; ++slot) {
    reports[slot].set_slot(slot + 4);
    reports[slot].set_loss(static_cast<float>(slot) + 0.5f);
    if (slot % 2 == 1) reports[slot].set_weight(0.5f);
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::string update;
      for (size_t k = 0; k < sizes[i]; ++k) update.push_back(static_cast<char>(slot * 31 + i * 7 + k));
      reports[slot].add_update(update);
    }
  }
  return reports;
}

ReportJoiner::Options Model(int64_t slots, const std::vector<size_t>& sizes) {
  ReportJoiner::Options options;
  options.reports = slots;
  options.updates = static_cast<int64_t>(sizes.size());
  for (const size_t size : sizes) options.update_bytes += static_cast<int64_t>(size);
  return options;
}

TEST(ReportPartsTest, JoinsCutReports) {
  for (const std::vector<size_t>& sizes :
       std::vector<std::vector<size_t>>{{}, {4}, {400}, {4, 400, 12}, {400, 4, 4, 400}, {40, 40, 40}}) {
    for (const int64_t slots : {1, 2, 7}) {
      const std::vector<v1::SlotReport> reports = Reports(slots, sizes);
      for (int64_t limit = 1; limit < 600; limit += 1 + limit / 10) {
        ReportJoiner joiner;
        joiner.Begin(Model(slots, sizes));
        for (const auto& list : CutReports(reports, limit)) {
          int64_t bytes = 0;
          for (const v1::SlotReport& part : list) {
            bytes += static_cast<int64_t>(part.ByteSizeLong());
            EXPECT_FALSE(joiner.complete());
            ASSERT_TRUE(joiner.Add(part, /*keep=*/true).ok());
          }
          EXPECT_LE(bytes, limit + 64);
        }
        EXPECT_TRUE(joiner.complete());
        const std::vector<v1::SlotReport> joined = joiner.kept();
        ASSERT_EQ(joined.size(), reports.size());
        for (size_t i = 0; i < reports.size(); ++i) {
          EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(joined[i], reports[i])) << limit;
        }
      }
    }
  }
}

TEST(ReportPartsTest, ALongSummaryIsCutAndJoined) {
  std::vector<v1::SlotReport> reports = Reports(3, {4, 400});
  for (v1::SlotReport& report : reports) {
    report.set_stop(report.slot() == 5);
    if (report.slot() != 4) report.set_metrics(std::string(90, 'm'));
    for (int i = 0; i < 1000; ++i) report.mutable_summary()->push_back(static_cast<char>(report.slot() * 7 + i));
  }
  for (int64_t limit = 1; limit < 4000; limit += 1 + limit / 10) {
    ReportJoiner joiner;
    joiner.Begin(Model(3, {4, 400}));
    int64_t slot = 0;
    for (const auto& list : CutReports(reports, limit)) {
      for (const v1::SlotReport& part : list) {
        EXPECT_LE(part.summary().size(), static_cast<size_t>(limit));
        EXPECT_TRUE(part.metrics().empty() || part.slot() != slot) << "not the slot's first part";
        slot = part.slot();
        ASSERT_TRUE(joiner.Add(part, /*keep=*/true).ok());
      }
    }
    const std::vector<v1::SlotReport> joined = joiner.kept();
    ASSERT_EQ(joined.size(), reports.size());
    for (size_t i = 0; i < reports.size(); ++i) {
      EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(joined[i], reports[i])) << limit;
    }
  }
}

TEST(ReportPartsTest, BoundsTheSummaryOfASlotOverAllParts) {
  v1::SlotReport part;
  part.set_slot(4);
  part.set_continued(true);
  part.set_summary(std::string(30, 'x'));
  part.set_metrics(std::string(10, 'x'));
  for (const bool keep : {true, false}) {
    ReportJoiner joiner;
    ReportJoiner::Options options = Model(1, {});
    options.summary_bytes = 100;
    joiner.Begin(options);
    EXPECT_TRUE(joiner.Add(part, keep).ok());
    EXPECT_TRUE(joiner.Add(part, keep).ok());
    EXPECT_THAT(std::string(joiner.Add(part, keep).message()),
                HasSubstr("the report of slot 4 has summaries of 120 bytes; at most 100 are allowed"));
  }
}

TEST(ReportPartsTest, SmallReportsAreOneList) {
  EXPECT_EQ(CutReports(Reports(7, {40, 4}), 1 << 20).size(), 1u);
  EXPECT_EQ(CutReports({}, 1 << 20).size(), 1u);
}

TEST(ReportPartsTest, MoreThanTheModelHasIsRefused) {
  ReportJoiner joiner;
  const auto expect_refused = [&](const v1::SlotReport& part, const std::string& text) {
    const absl::Status status = joiner.Add(part, /*keep=*/true);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  joiner.Begin(Model(1, {4, 4}));
  expect_refused(Reports(1, {4, 4, 0})[0], "the report of slot 4 has 3 update values; the model has 2 update ops");
  joiner.Begin(Model(1, {4, 4}));
  expect_refused(Reports(1, {4, 5})[0], "the report of slot 4 has update values of 9 bytes; the model's have 8");
  joiner.Begin(Model(1, {4, 4}));
  EXPECT_TRUE(joiner.Add(Reports(1, {4, 4})[0], true).ok());
  expect_refused(Reports(2, {4, 4})[1], "more than 1 reports in a contribution");

  joiner.Begin(Model(2, {4}));
  v1::SlotReport part;
  part.set_slot(4);
  part.set_continued(true);
  part.add_update("12");
  for (const bool keep : {true, false}) {  // an endless report
    joiner.Begin(Model(2, {4}));
    EXPECT_TRUE(joiner.Add(part, keep).ok());
    EXPECT_TRUE(joiner.Add(part, keep).ok());
    expect_refused(part, "has update values of 6 bytes; the model's have 4");
  }
  joiner.Begin(Model(2, {4}));
  EXPECT_TRUE(joiner.Add(part, true).ok());
  expect_refused(Reports(2, {4})[1], "a report for slot 5 where that of slot 4 goes on");
}

}  // namespace
}  // namespace lockstep
