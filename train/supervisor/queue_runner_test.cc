#include "lockstep/train/supervisor/queue_runner.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Queue = BoundedQueue<int>;

// Returns a function that enqueues 1, 2, … `count`, and then returns OutOfRange.
std::function<absl::Status()> CountTo(int count, Queue* queue) {
  return [count, queue, i = std::make_shared<int>(0)]() -> absl::Status {
    if (*i == count) return absl::OutOfRangeError("counted");
    return queue->Enqueue(++*i);
  };
}

// Returns all elements until the end.
std::vector<int> Drain(Queue* queue) {
  std::vector<int> elements;
  while (true) {
    const absl::StatusOr<int> element = queue->Dequeue();
    if (!element.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(element.status())) << element.status();
      return elements;
    }
    elements.push_back(*element);
  }
}

class QueueRunnerTest : public ::testing::Test {
 protected:
  std::unique_ptr<QueueRunner> Make(std::vector<std::function<absl::Status()>> enqueue) {
    QueueRunner::Options options;
    options.queue = queue_;
    options.enqueue = std::move(enqueue);
    return QueueRunner::Create(std::move(options)).value();
  }

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>(2);
  Coordinator coordinator_;
};

TEST_F(QueueRunnerTest, FillsTheQueueAndClosesItAtTheEnd) {
  EXPECT_EQ(Make({CountTo(5, queue_.get())})->Start(&coordinator_), 1u) << "the threads do without the runner";
  EXPECT_THAT(Drain(queue_.get()), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_TRUE(queue_->closed());
  EXPECT_TRUE(coordinator_.Join().ok()) << "without a stop";
  EXPECT_FALSE(coordinator_.ShouldStop());
}

// QR-02.
TEST_F(QueueRunnerTest, OnlyTheLastThreadToEndClosesTheQueue) {
  std::atomic<int> ended{0};
  const auto count = [&](int limit) {
    return [this, &ended, enqueue = CountTo(limit, queue_.get())] {
      const absl::Status status = enqueue();
      if (!status.ok()) {
        EXPECT_FALSE(queue_->closed());
        ++ended;
      }
      return status;
    };
  };
  const auto runner = Make({count(3), count(30)});
  EXPECT_EQ(runner->Start(&coordinator_), 2u);
  EXPECT_EQ(Drain(queue_.get()).size(), 33u);
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(coordinator_.Join().ok());
}

// QR-03.
TEST_F(QueueRunnerTest, DoesNothingOnceAStopIsRequested) {
  EXPECT_TRUE(coordinator_.RequestStop().ok());
  std::atomic<int> calls{0};
  const auto runner = Make({[&] {
    ++calls;
    return absl::OkStatus();
  }});
  runner->Start(&coordinator_);
  EXPECT_TRUE(coordinator_.Join().ok());
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(queue_->closed());
}

TEST_F(QueueRunnerTest, AStopCancelsWhoWaitsForRoom) {
  const auto runner = Make({CountTo(1000, queue_.get()), CountTo(1000, queue_.get())});
  runner->Start(&coordinator_);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(queue_->Dequeue().ok());
  EXPECT_TRUE(coordinator_.RequestStop().ok());
  EXPECT_TRUE(coordinator_.Join().ok()) << "being cancelled is no error of theirs";
  EXPECT_LE(Drain(queue_.get()).size(), 2u) << "what was in it is still to be had";
}

// QR-05.
TEST_F(QueueRunnerTest, StartsNothingWhileItsThreadsRun) {
  const auto runner = Make({CountTo(5, queue_.get())});
  EXPECT_EQ(runner->Start(&coordinator_), 1u);
  EXPECT_EQ(runner->Start(&coordinator_), 0u) << "three elements do not fit";
  EXPECT_EQ(Drain(queue_.get()).size(), 5u);
  EXPECT_TRUE(coordinator_.Join().ok());
}

// QR-06.
TEST_F(QueueRunnerTest, AnErrorStopsAllAndIsTheCoordinators) {
  const auto failing = [] { return absl::DataLossError("the file is damaged"); };
  const auto runner = Make({CountTo(1000, queue_.get()), failing});
  runner->Start(&coordinator_);
  const absl::Status status = coordinator_.Join();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(queue_->closed());
}

TEST_F(QueueRunnerTest, OtherCodesMayBeAnEnd) {
  QueueRunner::Options options;
  options.queue = queue_;
  options.enqueue = {[] { return absl::NotFoundError("no further file"); }};
  options.queue_closed_codes = {absl::StatusCode::kNotFound};
  QueueRunner::Create(options).value()->Start(&coordinator_);
  EXPECT_THAT(Drain(queue_.get()), ElementsAre());
  EXPECT_TRUE(coordinator_.Join().ok());
}

// QR-08.
TEST_F(QueueRunnerTest, WhatAnUpstreamQueueHasArrivesBeforeTheEnd) {
  Queue upstream(10);
  EXPECT_TRUE(upstream.Enqueue(10).ok());
  EXPECT_TRUE(upstream.Enqueue(20).ok());
  upstream.Close();
  const auto runner = Make({[&]() -> absl::Status {
    const absl::StatusOr<int> element = upstream.Dequeue();
    return element.ok() ? queue_->Enqueue(*element) : element.status();
  }});
  runner->Start(&coordinator_);
  EXPECT_THAT(Drain(queue_.get()), ElementsAre(10, 20));
  EXPECT_TRUE(absl::IsOutOfRange(queue_->Dequeue().status()));
  EXPECT_TRUE(coordinator_.Join().ok());
}

TEST_F(QueueRunnerTest, SeveralAreStartedTogether) {
  EXPECT_EQ(StartQueueRunners({}, &coordinator_), 0u);
  const auto other = std::make_shared<Queue>(1);
  const auto first = Make({CountTo(1, queue_.get()), CountTo(1, queue_.get())});
  QueueRunner::Options options;
  options.queue = other;
  options.enqueue = {CountTo(3, other.get())};
  const auto second = QueueRunner::Create(options).value();
  EXPECT_EQ(StartQueueRunners({first.get(), second.get()}, &coordinator_), 3u);
  EXPECT_THAT(Drain(queue_.get()), ElementsAre(1, 1));
  EXPECT_THAT(Drain(other.get()), ElementsAre(1, 2, 3));
  EXPECT_TRUE(coordinator_.Join().ok());
}

TEST_F(QueueRunnerTest, NamesTheOptionThatIsWrong) {
  const auto error = [](const QueueRunner::Options& options) {
    const absl::Status status = QueueRunner::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  QueueRunner::Options options;
  EXPECT_THAT(error(options), HasSubstr("queue is missing"));
  options.queue = queue_;
  EXPECT_THAT(error(options), HasSubstr("enqueue has no function"));
  options.enqueue = {nullptr};
  EXPECT_THAT(error(options), HasSubstr("enqueue has an empty function"));
  options.enqueue = {CountTo(1, queue_.get())};
  options.queue_closed_codes = {};
  EXPECT_THAT(error(options), HasSubstr("queue_closed_codes are empty"));
  options.queue_closed_codes = {absl::StatusCode::kOk};
  EXPECT_THAT(error(options), HasSubstr("queue_closed_codes have kOk"));
}

TEST(BoundedQueueTest, AClosedQueueTakesNothingAndGivesWhatItHas) {
  Queue queue(3);
  EXPECT_TRUE(queue.Enqueue(1).ok());
  EXPECT_TRUE(queue.Enqueue(2).ok());
  EXPECT_EQ(queue.size(), 2u);
  queue.Close();
  EXPECT_TRUE(absl::IsCancelled(queue.Enqueue(3)));
  EXPECT_THAT(Drain(&queue), ElementsAre(1, 2));
}

TEST(BoundedQueueTest, CloseGrantsRoomOrCancelsWaiters) {
  for (const bool cancel : {false, true}) {
    Queue queue(1);
    EXPECT_TRUE(queue.Enqueue(1).ok());
    absl::Status status;
    std::thread waiting([&] { status = queue.Enqueue(2); });
    while (queue.waiting() == 0) std::this_thread::yield();
    queue.Close(cancel);
    const std::vector<int> elements = Drain(&queue);
    waiting.join();
    EXPECT_EQ(status.code(), cancel ? absl::StatusCode::kCancelled : absl::StatusCode::kOk);
    EXPECT_EQ(elements.size(), cancel ? 1u : 2u);
  }
}

TEST(BoundedQueueTest, AConsumerThatWaitsHearsOfTheEnd) {
  Queue queue(1);
  std::thread consumer([&] { EXPECT_TRUE(absl::IsOutOfRange(queue.Dequeue().status())); });
  queue.Close();
  consumer.join();
}

TEST(BoundedQueueTest, HoldsWhatCanOnlyBeMoved) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.Enqueue(std::make_unique<int>(7)).ok());
  EXPECT_EQ(*queue.Dequeue().value(), 7);
}

}  // namespace
}  // namespace lockstep::train
