// Calls the thread-safe methods of Session while another thread runs the loop. Does not use sockets, so that it can run
// under the thread sanitizer.
#include <thread>

#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/session/chief_session.h"

namespace lockstep::train {
namespace {

TEST(ChiefSessionThreadsTest, AnyThreadMayAskWhileOneRuns) {
  MemoryFileSystem fs;
  SessionOptions options;
  options.op = CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
    optimizer { sgd {} learning_rate { initial: 0.05 } }
    input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
    training { replicas_to_aggregate: 1 unbounded: true })")
                   .value();
  options.logdir = "run";
  options.fs = &fs;
  const auto session = ChiefSession::Open(options).value();
  session->AllowThrough(StepMachine::kNoLimit);
  std::thread asking([&] {
    // Repeats only this call, because anything else might order the two threads.
    while (session->NextStep().value() < 200) {
    }
    EXPECT_TRUE(session->AddSummary(v1::Summary(), absl::nullopt).ok());
    EXPECT_FALSE(session->ShouldStop());
    EXPECT_TRUE(session->RequestStop("enough").ok());
  });
  int64_t last = 0;
  while (true) {
    session->SetState(last, {});
    const auto result = session->Run(options.op);
    if (!result.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(result.status())) << result.status();
      break;
    }
    last = result->global_step;
  }
  asking.join();
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace lockstep::train
