#include "lockstep/cli/launcher/run_page.h"

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

class FakeTable : public ProcessTable {
 public:
  absl::StatusOr<int> Start(const ProcessSpec& spec) override {
    if (fails) return absl::NotFoundError("no such program");
    command = spec.command;
    return 17;
  }
  void Signal(int pid, int signal) override { signals.emplace_back(pid, signal); }
  absl::optional<ProcessExit> NextExit() override { return absl::nullopt; }

  bool fails = false;
  std::vector<std::string> command;
  std::vector<std::pair<int, int>> signals;
};

class RunPageTest : public ::testing::Test {
 protected:
  RunPage::Options NewOptions() {
    RunPage::Options options;
    options.processes = &table_;
    options.fs = &fs_;
    options.command = {"lockstep", "page"};
    options.http = "127.0.0.1:9464";
    options.logdir = "/run";
    options.log_directory = "/";
    return options;
  }

  MemoryFileSystem fs_;
  FakeTable table_;
};

TEST_F(RunPageTest, ReportsTheAddressOnce) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/page.url", "http://127.0.0.1:1\n").ok());
  {
    RunPage page(NewOptions());
    EXPECT_FALSE(page.TakeLine());
    page.Start("grpc://127.0.0.1:2222");
    EXPECT_FALSE(page.TakeLine()) << "that is the address of another run's page";
    ASSERT_TRUE(WriteFileAtomically(&fs_, "/page.url", "http://127.0.0.1:9464\n").ok());
    EXPECT_EQ(page.TakeLine(), "page: http://127.0.0.1:9464");
    EXPECT_FALSE(page.TakeLine());
    EXPECT_TRUE(table_.signals.empty());
  }
  const std::vector<std::string> expected = {"lockstep",
                                             "page",
                                             "--master=grpc://127.0.0.1:2222",
                                             "--logdir=/run",
                                             "--http=127.0.0.1:9464",
                                             "--any_port",
                                             "--url_file=/page.url"};
  EXPECT_EQ(table_.command, expected);
  ASSERT_EQ(table_.signals.size(), 1u);
  EXPECT_EQ(table_.signals[0], std::make_pair(17, SIGTERM));
}

TEST_F(RunPageTest, APageThatFailsIsNoFailureOfTheRun) {
  table_.fails = true;
  RunPage page(NewOptions());
  page.Start("grpc://127.0.0.1:2222");
  EXPECT_EQ(page.TakeLine(), "there is no page: no such program");
}

TEST_F(RunPageTest, AProcessThatHasEndedGetsNoSignal) {
  {
    RunPage page(NewOptions());
    page.Start("grpc://127.0.0.1:2222");
    page.OnExit(16);
    EXPECT_FALSE(page.TakeLine());
    page.OnExit(17);
    EXPECT_EQ(page.TakeLine(), "there is no page: it has ended; /page.log says why");
  }
  EXPECT_TRUE(table_.signals.empty()) << "another process may have the number";
}

}  // namespace
}  // namespace lockstep
