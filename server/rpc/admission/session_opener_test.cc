#include "lockstep/server/rpc/admission/session_opener.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// A gate that delays the opening of sessions until the test allows it.
class Gate {
 public:
  absl::StatusOr<v1::OpenSessionReply> Open(const v1::OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++inside_;
    most_inside_ = std::max(most_inside_, inside_);
    changed_.SignalAll();
    while (!is_open_) changed_.Wait(&mutex_);
    --inside_;
    if (request.worker().empty()) return absl::InvalidArgumentError("no name");
    v1::OpenSessionReply reply;
    reply.set_session_id(request.worker().size());
    return reply;
  }
  void LetThrough() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    is_open_ = true;
    changed_.SignalAll();
  }
  void AwaitInside(int n) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (inside_ < n) changed_.Wait(&mutex_);
  }
  int most_inside() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return most_inside_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The answers, in order of arrival.
class Answers {
 public:
  UnaryCall::Done Next() {
    return [this](const absl::StatusOr<std::string>& reply) {
      MutexLock lock(&mutex_);
      replies_.push_back(reply);
    };
  }
  std::vector<absl::StatusOr<std::string>> replies() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return replies_;
  }

 private:
  Mutex mutex_;
  std::vector<absl::StatusOr<std::string>> replies_ ABSL_GUARDED_BY(mutex_);
};

std::string RequestOf(const std::string& worker) {
  v1::OpenSessionRequest request;
  request.set_worker(worker);
  return request.SerializeAsString();
}

class SessionOpenerTest : public ::testing::Test {
 protected:
  std::unique_ptr<SessionOpener> Make(const SessionOpener::Options& options) {
    return std::make_unique<SessionOpener>(
        options, [this](const v1::OpenSessionRequest& request, const std::string&) { return gate_.Open(request); });
  }

  Gate gate_;
  Answers answers_;
};

TEST_F(SessionOpenerTest, AnswersWithTheReplyOrTheError) {
  gate_.LetThrough();
  SessionOpener::Options options;
  options.threads = 1;
  auto opener = Make(options);
  opener->Answer(RequestOf("ada"), /*peer=*/"", answers_.Next());
  opener->Answer(RequestOf(""), /*peer=*/"", answers_.Next());
  opener->Answer("\xff", /*peer=*/"", answers_.Next());
  opener.reset();
  const auto replies = answers_.replies();
  ASSERT_EQ(replies.size(), 3u);
  v1::OpenSessionReply reply;
  ASSERT_TRUE(replies[0].ok() && reply.ParseFromString(*replies[0]));
  EXPECT_EQ(reply.session_id(), 3u);
  EXPECT_EQ(replies[1].status().message(), "no name");
  EXPECT_TRUE(absl::IsInternal(replies[2].status())) << replies[2].status();
}

TEST_F(SessionOpenerTest, OpensAtMostOnePerThread) {
  SessionOpener::Options options;
  options.threads = 2;
  auto opener = Make(options);
  for (int i = 0; i < 5; ++i) opener->Answer(RequestOf("worker"), /*peer=*/"", answers_.Next());
  gate_.AwaitInside(2);
  gate_.LetThrough();
  opener.reset();
  EXPECT_EQ(gate_.most_inside(), 2);
  EXPECT_EQ(answers_.replies().size(), 5u) << "those that waited are answered, too";
}

TEST_F(SessionOpenerTest, RefusesRequestsBeyondItsBytes) {
  SessionOpener::Options options;
  options.max_bytes = 64 << 10;
  options.threads = 1;
  auto opener = Make(options);
  for (int i = 0; i < 4; ++i) opener->Answer(RequestOf("worker"), /*peer=*/"", answers_.Next());
  const auto refused = answers_.replies();
  ASSERT_EQ(refused.size(), 1u) << "three calls fit with their overhead, but not a fourth";
  EXPECT_TRUE(absl::IsUnavailable(refused[0].status()));
  gate_.LetThrough();
  opener.reset();
  EXPECT_EQ(answers_.replies().size(), 4u);
}

TEST_F(SessionOpenerTest, RefusesARequestBeyondTheTotalLimit) {
  SessionOpener::Options options;
  options.max_bytes = 1 << 20;
  auto opener = Make(options);
  opener->Answer(RequestOf(std::string(1 << 20, 'x')), /*peer=*/"", answers_.Next());
  ASSERT_EQ(answers_.replies().size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(answers_.replies()[0].status()));
}

TEST_F(SessionOpenerTest, TakesRequestsAgainAfterReplies) {
  gate_.LetThrough();
  SessionOpener::Options options;
  options.max_bytes = 600 << 10;
  options.threads = 1;
  auto opener = Make(options);
  for (int i = 1; i <= 3; ++i) {
    // A request's bytes are released before it is answered, so wait for the answer.
    Mutex mutex;
    CondVar answered;
    bool done = false;
    opener->Answer(RequestOf("worker"), /*peer=*/"", [&](const absl::StatusOr<std::string>& reply) {
      EXPECT_TRUE(reply.ok()) << reply.status();
      MutexLock lock(&mutex);
      done = true;
      answered.SignalAll();
    });
    MutexLock lock(&mutex);
    while (!done) answered.Wait(&mutex);
  }
}

TEST_F(SessionOpenerTest, AThousandWorkersMayJoinTogether) {
  auto opener = Make({});
  const std::string request = RequestOf(std::string(8 << 10, 'w'));  // a declaration of some 200 variables
  for (int i = 0; i < 1000; ++i) opener->Answer(request, /*peer=*/"", answers_.Next());
  EXPECT_TRUE(answers_.replies().empty()) << "all wait";
  gate_.LetThrough();
}

}  // namespace
}  // namespace lockstep
