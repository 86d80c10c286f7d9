#include "lockstep/train/events/event_writer_cache.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

class EventWriterCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<EventWriter> Get(const std::string& directory) {
    auto writer = cache_.Get(&fs_, &clock_, directory);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return writer.ok() ? *writer : nullptr;
  }
  size_t Files(const std::string& directory) { return memory_.ListDirectory(directory).value().size(); }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  EventWriterCache cache_;
};

// EV-06.
TEST_F(EventWriterCacheTest, ADirectoryHasOneWriter) {
  const auto writer = Get("logs/eval");
  EXPECT_EQ(Get("logs/eval"), writer);
  EXPECT_EQ(Get("logs//eval/"), writer) << "another spelling";
  EXPECT_EQ(Get("./logs/eval"), writer);
  EXPECT_NE(Get("logs"), writer);
  EXPECT_EQ(Files("logs/eval"), 1u);
}

TEST_F(EventWriterCacheTest, FileSystemsAreKeptApart) {
  MemoryFileSystem other;
  const auto writer = Get("logs");
  EXPECT_NE(cache_.Get(&other, &clock_, "logs").value(), writer);
}

TEST_F(EventWriterCacheTest, WhoIsLastClosesTheFile) {
  auto writer = Get("logs");
  const std::string path = writer->path();
  writer->WriteScalar("loss", 0.5f, 1);
  writer.reset();
  const auto next = Get("logs");
  EXPECT_NE(next->path(), path) << "a file of its own";
}

TEST_F(EventWriterCacheTest, ClearClosesAll) {
  const auto first = Get("a"), second = Get("b");
  EXPECT_TRUE(cache_.Clear().ok());
  EXPECT_TRUE(first->closed());
  EXPECT_TRUE(second->closed());
  const auto next = Get("a");
  EXPECT_NE(next, first);
  EXPECT_FALSE(next->closed());
  EXPECT_TRUE(cache_.Clear().ok());
  EXPECT_TRUE(cache_.Clear().ok()) << "of none";
}

TEST_F(EventWriterCacheTest, OneThatWasClosedIsFollowedByAnother) {
  const auto writer = Get("logs");
  EXPECT_TRUE(writer->Close().ok());
  EXPECT_NE(Get("logs"), writer);
}

TEST_F(EventWriterCacheTest, AFailureIsReturnedAndTriedAgain) {
  fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "logs", absl::PermissionDeniedError("read-only"));
  EXPECT_TRUE(absl::IsPermissionDenied(cache_.Get(&fs_, &clock_, "logs").status()));
  fs_.Heal();
  EXPECT_NE(Get("logs"), nullptr);
}

TEST_F(EventWriterCacheTest, ThreadsThatComeTogetherShareIt) {
  std::vector<std::shared_ptr<EventWriter>> writers(8);
  std::vector<std::thread> threads;
  for (auto& writer : writers) threads.emplace_back([this, &writer] { writer = Get("logs"); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& writer : writers) EXPECT_EQ(writer, writers[0]);
  EXPECT_EQ(Files("logs"), 1u);
}

}  // namespace
}  // namespace lockstep
