#include "lockstep/server/rpc/chief_server.h"

#include <pthread.h>

#include <set>
#include <string>
#include <utility>

#include "google/protobuf/text_format.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

// Records which threads read the time, as every call of a session does.
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
  // Returns true if the only thread of the Step streams has read the time since the last call.
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

}  // namespace
}  // namespace lockstep
