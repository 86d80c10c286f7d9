#include "lockstep/server/rpc/step/step_frame_receiver.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/memory/shared_memory.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class SilentListener : public StepListener {
 public:
  void OnReplyReady() override {}
  void OnResume() override {}
  void OnClosed(const absl::Status&, bool) override {}
};

class StepFrameReceiverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Chief::Options options;
    options.fs = &fs_;
    options.clock = Clock::Real();
    options.share_memory = true;
    options.housekeeping_period = absl::ZeroDuration();
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "input { batch_size: 8 } optimizer { sgd {} learning_rate { initial: 0.1 } } training { steps: 10 }",
        &options.config));
    ApplyDefaults(&options.config);
    auto chief = Chief::Create(std::move(options));
    ASSERT_TRUE(chief.ok()) << chief.status();
    chief_ = *std::move(chief);
    v1::OpenSessionRequest request;
    request.set_worker("worker");
    request.set_incarnation(1);
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "variables { name: 'w' dtype: DT_FLOAT shape: 3 trainable: true initializer { zeros {} } }",
        request.mutable_model()));
    CompleteDeclaration(&request);
    const auto opened = chief_->sessions()->OpenSession(request);
    ASSERT_TRUE(opened.ok()) << opened.status();
    first_.session_id = opened->session_id();
    first_.generation = chief_->generation();
    receiver_ = std::make_unique<StepFrameReceiver>(chief_.get(), "", "10.0.0.7:43210");
  }

  void TearDown() override {
    if (connection_ != nullptr) connection_->Close();
  }

  // Receives a frame the way StepCall does.
  absl::Status Receive(const StepFrame& frame) {
    Decoded<StepFrame> decoded;
    const absl::Status status = receiver_->Decode(EncodeStepRequest(frame), &decoded);
    if (!status.ok()) return status;
    if (!receiver_->connected()) {
      auto connection = receiver_->Connect(decoded.frame, std::make_shared<SilentListener>());
      if (!connection.ok()) return connection.status();
      connection_ = *std::move(connection);
    }
    bool waits = false;
    return receiver_->Deliver(&decoded.frame, &waits);
  }
  absl::Status Decode(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    Decoded<StepFrame> decoded;
    return receiver_->Decode(grpc::ByteBuffer(&slice, 1), &decoded);
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Chief> chief_;
  StepFrame first_;
  std::shared_ptr<StepConnection> connection_;
  std::unique_ptr<StepFrameReceiver> receiver_;
};

TEST_F(StepFrameReceiverTest, TheFirstFrameOpensItsConnection) {
  EXPECT_FALSE(receiver_->connected());
  ASSERT_TRUE(Receive(first_).ok());
  EXPECT_TRUE(receiver_->connected());
  const v1::RunStatus status = chief_->GetStatus();
  ASSERT_EQ(status.worker_size(), 1);
  EXPECT_EQ(status.worker(0).address(), "10.0.0.7:43210");
}

TEST_F(StepFrameReceiverTest, AFirstFrameNeedsASession) {
  ++first_.session_id;
  EXPECT_TRUE(absl::IsAborted(Receive(first_)));
  EXPECT_FALSE(receiver_->connected());
}

TEST_F(StepFrameReceiverTest, AFirstFrameIsShort) {
  const absl::Status status = Decode(std::string(5000, '\0'));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(), "a first frame of 5000 bytes; it takes 4096");
}

TEST_F(StepFrameReceiverTest, BytesThatAreNoFrameAreRefused) { EXPECT_TRUE(absl::IsInvalidArgument(Decode("\xff"))); }

TEST_F(StepFrameReceiverTest, TheWorkersMemoryIsMapped) {
  const auto memory = SharedMemory::Create(4096);
  ASSERT_TRUE(memory.ok()) << memory.status();
  first_.gradient_memory = (*memory)->handle();
  ASSERT_TRUE(Receive(first_).ok());
  const grpc::Slice slice("short");
  EXPECT_EQ(receiver_->WorkBytes(grpc::ByteBuffer(&slice, 1)), 4096u + 5) << "the gradients may lie in the memory";
}

TEST_F(StepFrameReceiverTest, UnmappableMemoryFallsBackToBytes) {
  first_.gradient_memory.emplace();
  first_.gradient_memory->set_bytes(4096);
  ASSERT_TRUE(Receive(first_).ok());
  const grpc::Slice slice("short");
  EXPECT_EQ(receiver_->WorkBytes(grpc::ByteBuffer(&slice, 1)), 5u);
}

TEST_F(StepFrameReceiverTest, RefusesAGradientOutsideItsMemory) {
  ASSERT_TRUE(Receive(first_).ok());
  Decoded<StepFrame> decoded;
  decoded.frame = first_;
  decoded.frame.gradients.emplace_back();
  decoded.frame.gradients[0].shared = SharedSpan{0, 12};
  bool waits = false;
  const absl::Status status = receiver_->Deliver(&decoded.frame, &waits);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the stream has none"));
}

}  // namespace
}  // namespace lockstep
