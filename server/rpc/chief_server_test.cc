#include "lockstep/server/rpc/chief_server.h"

#include <pthread.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/grpc_run_feed.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

// A clock that records which threads read the time. Because every session call reads the time, this shows which thread
// handles a call.
class NotingClock : public Clock {
 public:
  absl::Time Now() override {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    MutexLock lock(&mutex_);
    threads_.insert(name);
    return Clock::Real()->Now();
  }
  absl::Time WallTime() override { return Clock::Real()->WallTime(); }
  bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return Clock::Real()->WaitUntil(cv, mutex, deadline);
  }
  // Returns true if the only thread of the Step streams has read the time since this function was last called.
  bool AskedByStepThread() {
    MutexLock lock(&mutex_);
    return threads_.erase("step-0") > 0;
  }

 private:
  Mutex mutex_;
  std::set<std::string> threads_ ABSL_GUARDED_BY(mutex_);
};

Chief::Options SmallChief(Clock* clock) {
  Chief::Options options;
  options.fs = FileSystem::Real();
  options.clock = clock;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 1 }", &options.config));
  ApplyDefaults(&options.config);
  return options;
}

TEST(ChiefServerTest, GrpcOutlivesTheLastOne) {
  ASSERT_EQ(grpc_is_initialized(), 0);
  const auto chief = Chief::Create(SmallChief(Clock::Real()));
  ASSERT_TRUE(chief.ok()) << chief.status();
  auto server = ChiefServer::Start(ChiefServer::Options(), chief->get());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NE((*server)->port(), 0);
  server->reset();
  EXPECT_NE(grpc_is_initialized(), 0);
}

TEST(ChiefServerTest, CanariesTakeNoStepThread) {
  NotingClock clock;
  const auto chief = Chief::Create(SmallChief(&clock));
  ASSERT_TRUE(chief.ok()) << chief.status();
  ChiefServer::Options options;
  options.step_threads = 1;
  const auto server = ChiefServer::Start(options, chief->get());
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub =
      v1::ChiefService::NewStub(grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  v1::HeartbeatReply beat;
  grpc::ClientContext heartbeat;
  EXPECT_EQ(stub->Heartbeat(&heartbeat, v1::HeartbeatRequest(), &beat).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(clock.AskedByStepThread());
  v1::GetCanaryValuesReply values;
  grpc::ClientContext canary;
  EXPECT_EQ(stub->GetCanaryValues(&canary, v1::GetCanaryValuesRequest(), &values).error_code(),
            grpc::StatusCode::ABORTED);
  EXPECT_FALSE(clock.AskedByStepThread());
}

class WatchRunTest : public ::testing::Test {
 protected:
  WatchRunTest() : chief_(Chief::Create(SmallChief(Clock::Real())).value()) {
    server_ = ChiefServer::Start(ChiefServer::Options(), chief_.get()).value();
  }
  std::unique_ptr<RunFeed> Watch() { return NewGrpcRunFeed(server_->address(), v1::WatchRunRequest()); }

  std::unique_ptr<Chief> chief_;
  std::unique_ptr<ChiefServer> server_;
};

TEST_F(WatchRunTest, StreamsTheStateThenEachSecond) {
  const auto feed = Watch();
  v1::WatchRunReply first, second;
  ASSERT_TRUE(feed->Read(&first).ok());
  EXPECT_EQ(first.status().phase(), v1::RunStatus::WAITING_FOR_MODEL);
  EXPECT_TRUE(first.new_history());
  ASSERT_EQ(first.event_size(), 1);
  EXPECT_EQ(first.event(0).kind(), "chief_started");
  EXPECT_EQ(first.counters().watchers(), 1);
  EXPECT_GT(first.counters().resident_bytes(), 0);
  ASSERT_TRUE(feed->Read(&second).ok());
  EXPECT_EQ(second.event_size(), 0) << "what is sent once is not sent again";
  EXPECT_FALSE(second.new_history());
}

TEST_F(WatchRunTest, CountsEndedCalls) {
  const auto stub =
      v1::ChiefService::NewStub(grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  v1::HeartbeatReply beat;
  grpc::ClientContext heartbeat;
  EXPECT_FALSE(stub->Heartbeat(&heartbeat, v1::HeartbeatRequest(), &beat).ok());
  const auto feed = Watch();
  v1::WatchRunReply reply;
  // The client may know the end of its call before the server does.
  do {
    ASSERT_TRUE(feed->Read(&reply).ok());
  } while (reply.counters().calls_size() == 0);
  EXPECT_EQ(reply.counters().calls(0).method(), "Heartbeat");
  EXPECT_EQ(reply.counters().calls(0).code(), "ABORTED");
  EXPECT_EQ(reply.counters().calls(0).count(), 1);
}

TEST_F(WatchRunTest, EndsWithTheServer) {
  const auto feed = Watch();
  v1::WatchRunReply reply;
  ASSERT_TRUE(feed->Read(&reply).ok());
  chief_->ends()->RequestStop();
  server_.reset();
  int last = 0;
  absl::Status status;
  while ((status = feed->Read(&reply)).ok()) ++last;
  EXPECT_GT(last, 0) << "a watcher learns how the run ended";
  EXPECT_EQ(status, absl::UnavailableError("the chief is stopping"));
}

TEST_F(WatchRunTest, RefusesMoreWatchersThanItsLimit) {
  std::vector<std::unique_ptr<RunFeed>> feeds;
  v1::WatchRunReply reply;
  for (int i = 0; i < 64; ++i) {
    feeds.push_back(Watch());
    ASSERT_TRUE(feeds.back()->Read(&reply).ok());
  }
  const absl::Status refused = Watch()->Read(&reply);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(refused.message(), "the run has 64 watchers already; try again later");
  feeds[0]->Cancel();
  absl::Status again = refused;
  // The chief notices that a watcher has gone only when it sends the next reply.
  while (!again.ok() && feeds[1]->Read(&reply).ok()) again = Watch()->Read(&reply);
  EXPECT_TRUE(again.ok()) << again;
}

}  // namespace
}  // namespace lockstep
