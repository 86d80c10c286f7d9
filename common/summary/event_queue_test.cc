#include "lockstep/common/summary/event_queue.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class EventQueueTest : public ::testing::Test {
 protected:
  EventQueueTest() {
    options_.clock = &clock_;
    options_.capacity = 4;
  }
  ~EventQueueTest() override { fs_.Release(); }

  void Start() {
    auto writer = EventWriter::Create(&fs_, &clock_, "logs", "host").value();
    path_ = writer->path();
    queue_ = std::make_unique<EventQueue>(options_, std::move(writer));
  }
  std::vector<v1::Event> Events() {
    const auto reader = RecordReader::Open(&memory_, path_).value();
    std::vector<v1::Event> events;
    for (uint64_t offset = 0; offset < reader->size();) {
      std::string payload;
      offset = reader->ReadAt(offset, &payload).value().next;
      EXPECT_TRUE(events.emplace_back().ParseFromString(payload));
    }
    return events;
  }
  // Returns the steps of all events except the version.
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    for (const v1::Event& event : Events()) {
      if (event.file_version().empty()) steps.push_back(event.step());
    }
    return steps;
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  HangingFileSystem fs_{&memory_};
  EventQueue::Options options_;
  std::string path_;
  std::unique_ptr<EventQueue> queue_;
};

TEST_F(EventQueueTest, WritesInOrderAndStampsOnArrival) {
  Start();
  fs_.Hang("events");
  queue_->WriteSessionLog(v1::SessionLog::START, 1);
  fs_.AwaitHanging();
  clock_.Advance(absl::Seconds(3));
  queue_->WriteScalar("loss", 0.5, 2);
  clock_.Advance(absl::Seconds(3));
  fs_.Release();
  EXPECT_TRUE(queue_->Flush(absl::Seconds(1)).ok());
  const std::vector<v1::Event> events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].session_log().status(), v1::SessionLog::START);
  EXPECT_EQ(events[1].wall_time(), 1577836800);
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 0.5);
  EXPECT_EQ(events[2].wall_time(), 1577836803);
}

TEST_F(EventQueueTest, LosesNothingWhenItIsDestroyed) {
  options_.capacity = 1000;
  Start();
  std::vector<int64_t> steps;
  for (int64_t step = 0; step < 1000; ++step) {
    queue_->WriteScalar("loss", 1, step);
    steps.push_back(step);
  }
  queue_.reset();
  EXPECT_EQ(Steps(), steps);
}

TEST_F(EventQueueTest, DropsAndCountsWhenTheQueueIsFull) {
  Start();
  fs_.Hang("events");
  queue_->WriteScalar("loss", 1, 0);
  fs_.AwaitHanging();
  for (int64_t step = 1; step <= 9; ++step) queue_->WriteScalar("loss", 1, step);
  EXPECT_EQ(queue_->dropped(), 5);
  fs_.Release();
  EXPECT_TRUE(queue_->Flush(absl::Seconds(1)).ok());
  queue_->WriteScalar("loss", 1, 10);
  queue_.reset();
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4, 10));
}

TEST_F(EventQueueTest, Holds4096EventsByDefault) {
  options_.capacity = EventQueue::Options().capacity;
  Start();
  fs_.Hang("events");
  queue_->WriteScalar("loss", 1, 0);
  fs_.AwaitHanging();
  for (int64_t step = 1; step <= 4096; ++step) queue_->WriteScalar("loss", 1, step);
  EXPECT_EQ(queue_->dropped(), 0);
  queue_->WriteScalar("loss", 1, 4097);
  EXPECT_EQ(queue_->dropped(), 1);
}

TEST_F(EventQueueTest, BoundsTheMemoryOfWaitingEvents) {
  options_.capacity = 1000;
  options_.capacity_bytes = 300 << 10;
  Start();
  fs_.Hang("events");
  queue_->WriteScalar("loss", 1, 0);
  fs_.AwaitHanging();
  v1::Event large;
  large.mutable_summary()->add_value()->set_tag(std::string(200 << 10, 'x'));
  large.set_step(1);
  EXPECT_TRUE(queue_->Write(large));
  EXPECT_FALSE(queue_->Write(large)) << "400 KiB would wait";
  queue_->WriteScalar("loss", 1, 2);
  EXPECT_EQ(queue_->dropped(), 1);
  fs_.Release();
  EXPECT_TRUE(queue_->Flush(absl::Seconds(1)).ok());
  large.mutable_summary()->mutable_value(0)->set_tag(std::string(400 << 10, 'x'));
  large.set_step(3);
  EXPECT_TRUE(queue_->Write(large)) << "nothing waits before it";
  queue_.reset();
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3));
}

TEST_F(EventQueueTest, AFlushIsGivenUpAtItsLimit) {
  Start();
  fs_.Hang("events");
  queue_->WriteScalar("loss", 1, 1);
  fs_.AwaitHanging();
  absl::Status status;
  std::thread flush([&] { status = queue_->Flush(absl::Seconds(7)); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(7));
  flush.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  fs_.Release();
  EXPECT_TRUE(queue_->Flush(absl::Seconds(7)).ok());
  EXPECT_THAT(Steps(), ElementsAre(1));
}

TEST(HangingEventQueueTest, DestroyingItIsGivenUpAtItsLimit) {
  // The abandoned thread keeps using these objects.
  auto* const clock = new SimulatedClock;
  auto* const memory = new MemoryFileSystem;
  auto* const fs = new HangingFileSystem(memory);
  EventQueue::Options options;
  options.clock = clock;
  options.close_limit = absl::Seconds(3);
  auto queue = std::make_unique<EventQueue>(options, EventWriter::Create(fs, clock, "logs", "host").value());
  fs->Hang("events");
  queue->WriteScalar("loss", 1, 1);
  fs->AwaitHanging();
  std::thread destroying([&] { queue.reset(); });
  clock->AwaitWaiters(1);
  clock->Advance(absl::Seconds(3));
  destroying.join();
}

}  // namespace
}  // namespace lockstep
