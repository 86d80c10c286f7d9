// Tests `lockstep trace` with a running cluster.
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

// An event with a beginning and an end, in microseconds.
struct Slice {
  std::string name;
  double begin = 0, end = 0;
};

// Returns the slices of each row, by the row's name.
std::map<std::string, std::vector<Slice>> RowsOf(const std::string& json) {
  google::protobuf::Struct trace;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &trace);
  EXPECT_TRUE(parsed.ok()) << parsed.ToString();
  std::map<int, std::string> names;
  std::map<std::string, std::vector<Slice>> rows;
  for (const auto& value : trace.fields().at("traceEvents").list_value().values()) {
    const auto& event = value.struct_value().fields();
    const int row = static_cast<int>(event.at("tid").number_value());
    const std::string& name = event.at("name").string_value();
    if (name == "thread_name") names[row] = event.at("args").struct_value().fields().at("name").string_value();
    if (event.at("ph").string_value() != "X") continue;
    const double begin = event.at("ts").number_value();
    rows[names[row]].push_back({name, begin, begin + event.at("dur").number_value()});
  }
  return rows;
}

TEST(TraceTest, WritesTheLastStepsOfARunningCluster) {
  constexpr int kSteps = 20;
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1000000, /*slots=*/2);
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 2; ++i) cluster.StartWorker();
  const std::string path = absl::StrCat(::testing::TempDir(), "/trace.json");
  std::ostringstream out, err;
  ASSERT_EQ(TraceCommand(FileSystem::Real(),
                         {absl::StrCat("--master=grpc://", cluster.address()), absl::StrCat("--steps=", kSteps),
                          absl::StrCat("--out=", path)},
                         out, err),
            0)
      << err.str();
  EXPECT_EQ(out.str(), absl::StrCat(path, ": 20 steps\n"));
  const auto rows = RowsOf(ReadFile(FileSystem::Real(), path).value());
  ASSERT_EQ(rows.count("chief"), 1u);
  const std::vector<Slice>& steps = rows.at("chief");
  ASSERT_EQ(steps.size(), static_cast<size_t>(kSteps));
  int computed = 0;
  for (const auto& [row, slices] : rows) {
    if (row == "chief") continue;
    EXPECT_TRUE(absl::StartsWith(row, "worker-")) << row;
    for (const Slice& slice : slices) {
      if (slice.name != "compute") continue;
      ++computed;
      // All rows have the chief's time, up to the rounding of a worker's times.
      EXPECT_LE(slice.end, steps.back().end);
      EXPECT_GE(slice.end, steps.front().begin - 1000);
    }
  }
  EXPECT_GE(computed, kSteps);
}

}  // namespace
}  // namespace lockstep
