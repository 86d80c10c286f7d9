// Tests workers that do not read the chief's replies, and whose streams end one after another. The memory that the
// chief keeps for them must stay bounded, and the run must continue.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/tests/testing/gated_run.h"
#include "lockstep/tests/testing/process_memory.h"
#include "lockstep/tests/testing/proto_only_worker.h"

namespace lockstep {
namespace {

constexpr int kStreams = 40;
// The size of one version of the values, much larger than gRPC's window.
constexpr int64_t kVersionBytes = 16 << 20;
// The maximum number of versions. It is more than the versions that unread streams may keep, training needs and
// canceled streams still hold, taken together, but less than kStreams.
constexpr int64_t kMostVersions = 22;
constexpr char kName[] = "stranger";

class UnreadStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stranger_.Open());
    run_.Train(2);
  }

  // Opens streams one after another. Each ends because of `frame` or, if that is null, because the next stream replaces
  // it.
  void ExpectBounded(const v1::StepRequest* frame) {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<ProtoOnlyWorker::Stream>> streams;
    const MemoryGrowth memory;
    for (int i = 0; i < kStreams; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(stranger_.NewStream(contexts.back().get()));
      ASSERT_TRUE(streams.back()->Write(stranger_.AskForToken()));
      run_.AwaitValues(kName);
      if (frame != nullptr) {
        ASSERT_TRUE(streams.back()->Write(*frame));
        run_.AwaitOneStream();
      }
      run_.Train(1);
    }
    EXPECT_LT(memory.peak(), kMostVersions * kVersionBytes);
    run_.Train(2);
    for (const auto& context : contexts) context->TryCancel();
  }

  GatedRun run_{kVersionBytes, ChiefServer::Options()};
  ProtoOnlyWorker stranger_{run_.address(), kName, 4711};
};

TEST_F(UnreadStreamsTest, ReplacedOnesKeepFewVersions) { ExpectBounded(nullptr); }

TEST_F(UnreadStreamsTest, OnesThatLeaveKeepFewVersions) {
  v1::StepRequest leave = stranger_.NewRequest(v1::Token());
  leave.set_leave(true);
  ExpectBounded(&leave);
}

TEST_F(UnreadStreamsTest, OnesThatBreakARuleKeepFewVersions) {
  v1::StepRequest wrong = stranger_.AskForToken();
  wrong.set_session_id(wrong.session_id() + 1);
  ExpectBounded(&wrong);
}

}  // namespace
}  // namespace lockstep
