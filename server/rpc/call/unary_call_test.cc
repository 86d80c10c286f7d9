#include "lockstep/server/rpc/call/unary_call.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/server/rpc/testing/loopback_server.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A service whose methods are passed to `Serve`.
class Service {
 public:
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) {
    if (request.session_id() == 0) return absl::AbortedError("no session");
    v1::HeartbeatReply reply;
    reply.set_global_step(static_cast<int64_t>(request.session_id()) + 1);
    return reply;
  }
  v1::HeartbeatReply Newest() const {
    v1::HeartbeatReply reply;
    reply.set_global_step(7);
    return reply;
  }
};

UnauthenticatedCalls::Options AtMost(size_t most) {
  UnauthenticatedCalls::Options options;
  options.most = options.most_young = most;
  return options;
}

class UnaryCallTest : public ::testing::Test {
 protected:
  // Adds a method. All methods must be added before the first call to server(), which starts the server.
  void Add(const std::string& name, UnaryCall::Method method) { methods_[name] = std::move(method); }
  LoopbackServer& server() {
    if (server_ == nullptr) {
      std::map<std::string, CallAcceptor::Handler> handlers;
      for (const auto& entry : methods_) {
        handlers[entry.first] = [this, method = &entry.second](std::unique_ptr<IncomingCall> call) {
          UnaryCall::Start(std::move(call), method, &unauthenticated_calls_);
        };
      }
      server_ = std::make_unique<LoopbackServer>(std::move(handlers));
    }
    return *server_;
  }
  static UnaryCall::Method Echo() {
    UnaryCall::Method method;
    method.handler = [](std::string request, const CallPeer&, const UnaryCall::Done& done) {
      done(std::move(request));
    };
    return method;
  }

  Service service_;
  UnauthenticatedCalls unauthenticated_calls_{AtMost(1)};
  std::map<std::string, UnaryCall::Method> methods_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(UnaryCallTest, AnswersWithTheBytesOfTheHandler) {
  Add("/a/Echo", Echo());
  std::string reply;
  EXPECT_TRUE(server().Call("/a/Echo", "hello", &reply).ok());
  EXPECT_EQ(reply, "hello");
  EXPECT_TRUE(server().Call("/a/Echo", "", &reply).ok());
  EXPECT_EQ(reply, "");
}

TEST_F(UnaryCallTest, RefusesAMessageThatIsTooLong) {
  Add("/a/Echo", Echo());
  std::string reply;
  EXPECT_TRUE(server().Call("/a/Echo", std::string(4096, 'x'), &reply).ok());
  const grpc::Status status = server().Call("/a/Echo", std::string(4097, 'x'), &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "a message of 4097 bytes; /a/Echo takes 4096");
}

TEST_F(UnaryCallTest, RefusesACallWithoutAMessage) {
  Add("/a/Echo", Echo());
  LoopbackStream stream(server().channel(), "/a/Echo");
  stream.WritesDone();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(UnaryCallTest, ALaterAnswerComesFromAnyThread) {
  ThreadPool pool(1);
  UnaryCall::Method later;
  later.lasting = true;
  later.handler = [&pool](std::string request, const CallPeer&, UnaryCall::Done done) {
    pool.Schedule([request = std::move(request), done = std::move(done)] { done(request + "!"); });
  };
  Add("/a/Later", std::move(later));
  std::string reply;
  EXPECT_TRUE(server().Call("/a/Later", "hello", &reply).ok());
  EXPECT_EQ(reply, "hello!");
}

TEST_F(UnaryCallTest, ASilentCallGivesWayToTheNext) {
  Add("/a/Echo", Echo());
  LoopbackStream silent(server().channel(), "/a/Echo");
  std::string reply;
  EXPECT_TRUE(server().Call("/a/Echo", "hello", &reply).ok());
  EXPECT_EQ(silent.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(UnaryCallTest, EndedCallsAreCountedByCode) {
  Add("/a/Echo", Echo());
  std::string reply;
  {
    LoopbackStream silent(server().channel(), "/a/Echo");
    EXPECT_TRUE(server().Call("/a/Echo", "hello", &reply).ok());
    EXPECT_EQ(silent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_FALSE(server().Call("/a/Echo", std::string(4097, 'x'), &reply).ok());
  EXPECT_FALSE(server().Call("/a/Nothing", "hello", &reply).ok());
  const v1::RunCounters ended = server().Stop();
  std::vector<std::string> counts;
  for (const auto& calls : ended.calls()) {
    counts.push_back(absl::StrCat(calls.count(), " ", calls.method(), " ", calls.code()));
  }
  EXPECT_THAT(counts,
              ElementsAre("1 Echo OK", "1 Echo CANCELLED", "1 Echo RESOURCE_EXHAUSTED", "1 other UNIMPLEMENTED"));
}

TEST_F(UnaryCallTest, AHandledLastingCallIsNotCounted) {
  Mutex mutex;
  CondVar changed;
  UnaryCall::Done kept;
  UnaryCall::Method lasting;
  lasting.lasting = true;
  lasting.handler = [&](std::string, const CallPeer&, UnaryCall::Done done) {
    MutexLock lock(&mutex);
    kept = std::move(done);
    changed.SignalAll();
  };
  Add("/a/Lasting", std::move(lasting));
  Add("/a/Echo", Echo());
  LoopbackStream stream(server().channel(), "/a/Lasting");
  stream.Write("wait");
  {
    MutexLock lock(&mutex);
    while (!kept) changed.Wait(&mutex);
  }
  std::string reply;
  EXPECT_TRUE(server().Call("/a/Echo", "hello", &reply).ok());
  std::exchange(kept, nullptr)("done");
  EXPECT_TRUE(stream.Read(&reply));
  EXPECT_EQ(reply, "done");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(UnaryCallTest, CallsQueuedForAPoolAreBounded) {
  Mutex mutex;
  CondVar changed;
  int waiting = 0, allowed = 0, answered = 0;
  const auto await = [&](const int& count, int least) {
    MutexLock lock(&mutex);
    while (count < least) changed.Wait(&mutex);
  };
  const auto add = [&](int* count) {
    MutexLock lock(&mutex);
    ++*count;
    changed.SignalAll();
  };
  ThreadPool pool(1);
  UnaryCall::Method slow;
  slow.handler = [&](std::string request, const CallPeer&, UnaryCall::Done done) {
    await(allowed, ++answered);
    done(std::move(request));
  };
  UnaryCall::Method pooled = OnPool(std::move(slow), &pool, 2);
  pooled.handler = [&, handler = std::move(pooled.handler)](std::string request, const CallPeer& peer,
                                                            UnaryCall::Done done) {
    handler(std::move(request), peer, std::move(done));
    add(&waiting);
  };
  Add("/a/Pooled", std::move(pooled));
  LoopbackStream first(server().channel(), "/a/Pooled");
  first.Write("first");
  await(waiting, 1);
  LoopbackStream second(server().channel(), "/a/Pooled");
  second.Write("second");
  await(waiting, 2);
  std::string reply;
  EXPECT_EQ(server().Call("/a/Pooled", "third", &reply).error_code(), grpc::StatusCode::UNAVAILABLE);
  for (LoopbackStream* const stream : {&first, &second}) {
    add(&allowed);
    EXPECT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply, stream == &first ? "first" : "second");
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_F(UnaryCallTest, ServesAMemberFunction) {
  Add("/a/Heartbeat", Serve(&service_, &Service::Heartbeat));
  v1::HeartbeatRequest request;
  std::string bytes;
  EXPECT_EQ(server().Call("/a/Heartbeat", request.SerializeAsString(), &bytes).error_message(), "no session");
  request.set_session_id(3);
  ASSERT_TRUE(server().Call("/a/Heartbeat", request.SerializeAsString(), &bytes).ok());
  v1::HeartbeatReply reply;
  ASSERT_TRUE(reply.ParseFromString(bytes));
  EXPECT_EQ(reply.global_step(), 4);
}

TEST_F(UnaryCallTest, ServesAMemberFunctionWithoutARequest) {
  Add("/a/Newest", Serve<v1::GetStatusRequest>(&service_, &Service::Newest));
  std::string bytes;
  ASSERT_TRUE(server().Call("/a/Newest", "", &bytes).ok());
  v1::HeartbeatReply reply;
  ASSERT_TRUE(reply.ParseFromString(bytes));
  EXPECT_EQ(reply.global_step(), 7);
}

TEST_F(UnaryCallTest, UnparsableRequestIsAnInternalError) {
  Add("/a/Heartbeat", Serve(&service_, &Service::Heartbeat));
  Add("/a/Newest", Serve<v1::GetStatusRequest>(&service_, &Service::Newest));
  for (const char* method : {"/a/Heartbeat", "/a/Newest"}) {
    std::string bytes;
    const grpc::Status status = server().Call(method, "\xff", &bytes);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_THAT(status.error_message(), HasSubstr("unable to parse request"));
  }
}

}  // namespace
}  // namespace lockstep
