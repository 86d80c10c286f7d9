#include "lockstep/common/summary/event_writer.h"

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class EventWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventWriter> Create() { return EventWriter::Create(&fs_, &clock_, "logs", "host").value(); }

  // Returns the events that a reader sees now.
  std::vector<v1::Event> Events(const std::string& path) {
    const auto reader = RecordReader::Open(&memory_, path).value();
    std::vector<v1::Event> events;
    for (uint64_t offset = 0; offset < reader->size();) {
      std::string payload;
      const auto position = reader->ReadAt(offset, &payload);
      if (!position.ok()) {
        ADD_FAILURE() << position.status();
        break;
      }
      offset = position->next;
      EXPECT_TRUE(events.emplace_back().ParseFromString(payload));
    }
    return events;
  }
  std::vector<int64_t> Steps(const std::string& path) {
    std::vector<int64_t> steps;
    for (const v1::Event& event : Events(path)) steps.push_back(event.step());
    return steps;
  }

  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  SimulatedClock clock_;
};

TEST_F(EventWriterTest, OverwritesNothingItCannotSee) {
  Create()->WriteScalar("loss", 1, 7);
  const std::string path = "logs/events.out.tfevents.1577836800.host";
  ASSERT_THAT(Steps(path), ElementsAre(0, 7));
  fs_.FailMatching(FaultyFileSystem::Operation::kExists, path, absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(EventWriter::Create(&fs_, &clock_, "logs", "host").status()));
  EXPECT_THAT(Steps(path), ElementsAre(0, 7));
}

// EV-01
TEST_F(EventWriterTest, StartsWithTheVersionOfTensorFlow) {
  clock_.Advance(absl::Milliseconds(1700));
  const auto writer = Create();
  EXPECT_EQ(writer->path(), "logs/events.out.tfevents.1577836801.host");
  const std::vector<v1::Event> events = Events(writer->path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1577836801);
  EXPECT_EQ(events[0].step(), 0);
}

TEST_F(EventWriterTest, TakesTheNameOfThisHost) {
  const auto writer = EventWriter::Create(&fs_, &clock_, "logs").value();
  EXPECT_THAT(writer->path(), MatchesRegex("logs/events\\.out\\.tfevents\\.1577836800\\..+"));
}

// EV-02
TEST_F(EventWriterTest, StartsANewFileAtEveryOpening) {
  std::vector<std::string> paths;
  for (const absl::Duration pause : {absl::ZeroDuration(), absl::Milliseconds(1200), absl::ZeroDuration()}) {
    clock_.Advance(pause);
    const auto writer = Create();
    writer->WriteScalar("loss", 1, 5);
    EXPECT_TRUE(writer->Close().ok());
    paths.push_back(writer->path());
  }
  EXPECT_THAT(paths, ElementsAre("logs/events.out.tfevents.1577836800.host", "logs/events.out.tfevents.1577836801.host",
                                 "logs/events.out.tfevents.1577836801.host.1"));
  for (const std::string& path : paths) {
    const std::vector<v1::Event> events = Events(path);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].file_version(), "brain.Event:2");
    EXPECT_EQ(events[1].step(), 5);
  }
}

// EV-03
TEST_F(EventWriterTest, DropsEventsAfterClose) {
  const auto writer = Create();
  writer->WriteScalar("loss", 1, 1);
  EXPECT_TRUE(writer->Close().ok());
  writer->WriteScalar("loss", 1, 2);
  writer->WriteScalar("loss", 1, 3);
  EXPECT_TRUE(writer->Flush().ok());
  EXPECT_TRUE(writer->Close().ok());
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 1));
}

TEST_F(EventWriterTest, StampsTheTimeUnlessTheEventHasOne) {
  const auto writer = Create();
  clock_.Advance(absl::Milliseconds(250));
  writer->WriteScalar("loss", 0.5, 1);
  v1::Event event;
  event.set_wall_time(17);
  writer->Write(event);
  ASSERT_TRUE(writer->Flush().ok());
  const std::vector<v1::Event> events = Events(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].wall_time(), 1577836800.25);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5);
  EXPECT_EQ(events[2].wall_time(), 17);
}

TEST_F(EventWriterTest, WritesSessionLogs) {
  const auto writer = Create();
  writer->WriteSessionLog(v1::SessionLog::START, 3);
  writer->WriteSessionLog(v1::SessionLog::CHECKPOINT, 4, "logs/model.ckpt-4");
  ASSERT_TRUE(writer->Close().ok());
  const std::vector<v1::Event> events = Events(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].session_log().status(), v1::SessionLog::START);
  EXPECT_EQ(events[1].step(), 3);
  EXPECT_EQ(events[2].session_log().checkpoint_path(), "logs/model.ckpt-4");
}

TEST_F(EventWriterTest, RefusesARepeatedTagOfRunMetadata) {
  const auto writer = Create();
  ASSERT_TRUE(writer->WriteRunMetadata("step_7", "cost", 7).ok());
  const absl::Status repeated = writer->WriteRunMetadata("step_7", "more", 8);
  EXPECT_EQ(repeated.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(repeated.message(),
            "run metadata of step 8: the tag step_7 is in logs/events.out.tfevents.1577836800.host already");
  ASSERT_TRUE(writer->WriteRunMetadata("step_8", "more", 8).ok());
  ASSERT_TRUE(writer->Flush().ok());
  const std::vector<v1::Event> events = Events(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].tagged_run_metadata().tag(), "step_7");
  EXPECT_EQ(events[1].tagged_run_metadata().run_metadata(), "cost");
}

TEST_F(EventWriterTest, FlushesTheFirstEventThenEveryTenth) {
  const auto writer = Create();
  writer->WriteScalar("loss", 1, 1);
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 1));
  for (int step = 2; step <= 10; ++step) writer->WriteScalar("loss", 1, step);
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 1));
  writer->WriteScalar("loss", 1, 11);
  EXPECT_EQ(Steps(writer->path()).size(), 12u);
}

TEST_F(EventWriterTest, FlushesTwoMinutesAfterTheLastFlush) {
  const auto writer = Create();
  writer->WriteScalar("loss", 1, 1);
  clock_.Advance(absl::Seconds(119));
  writer->WriteScalar("loss", 1, 2);
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 1));
  clock_.Advance(absl::Seconds(1));
  writer->WriteScalar("loss", 1, 3);
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 1, 2, 3));
  writer->WriteScalar("loss", 1, 4);
  EXPECT_EQ(Steps(writer->path()).size(), 4u);
  EXPECT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Steps(writer->path()).size(), 5u);
}

TEST_F(EventWriterTest, ContinuesAfterAFullDisk) {
  const auto writer = Create();
  writer->WriteScalar("loss", 1, 1);
  fs_.FillDiskAfter(10);
  for (int step = 2; step <= 30; ++step) writer->WriteScalar("loss", 1, step);
  fs_.Heal();
  writer->WriteScalar("loss", 1, 31);
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 1, 31));
}

// The file still begins with the version.
TEST_F(EventWriterTest, StartsOnAFullDisk) {
  fs_.FillDiskAfter(0);
  const auto writer = Create();
  writer->WriteScalar("loss", 1, 1);
  EXPECT_TRUE(Events(writer->path()).empty());
  fs_.Heal();
  writer->WriteScalar("loss", 1, 2);
  EXPECT_THAT(Steps(writer->path()), ElementsAre(0, 2));
  EXPECT_EQ(Events(writer->path())[0].file_version(), "brain.Event:2");
}

TEST_F(EventWriterTest, ReportsErrorsOfFlushAndClose) {
  const auto writer = Create();
  writer->WriteScalar("loss", 1, 1);
  writer->WriteScalar("loss", 1, 2);
  fs_.FailOperation(1, absl::InternalError("injected"));
  EXPECT_EQ(writer->Flush().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Steps(writer->path()).size(), 3u);
  fs_.FailOperation(1, absl::InternalError("injected"));
  EXPECT_EQ(writer->Close().code(), absl::StatusCode::kInternal);
}

TEST_F(EventWriterTest, SaysWhyTheFileCannotBeCreated) {
  ASSERT_TRUE(WriteFileAtomically(&memory_, "file", "").ok());
  EXPECT_FALSE(EventWriter::Create(&fs_, &clock_, "file").ok());
}

TEST_F(EventWriterTest, KeepsRecordsOfSeveralThreadsApart) {
  const auto writer = Create();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int step = 1; step <= 100; ++step) writer->WriteScalar("loss", 1, step);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(Events(writer->path()).size(), 401u);
}

}  // namespace
}  // namespace lockstep
