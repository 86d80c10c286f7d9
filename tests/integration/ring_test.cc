// Tests the rings that a foreign worker offers to a chief that shares memory (docs/wire.md).
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/limited_threads.h"
#include "lockstep/common/memory/ring_endpoint.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/tests/testing/proto_only_worker.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TestCluster::Options SharingCluster() {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/5, /*slots=*/1);
  options.share_memory = true;
  return options;
}

// A foreign worker's stream, whose first frame offers a ring.
class Offer {
 public:
  Offer(TestCluster* cluster, const v1::SharedMemoryHandle& ring, bool shares = true)
      : stranger_(cluster->address(), "stranger", 1), gradients_(SharedMemory::Create(64).value()) {
    stranger_.Open();
    stream_ = stranger_.NewStream(&context_);
    v1::StepRequest ask = stranger_.AskForToken();
    if (shares) *ask.mutable_gradient_memory() = gradients_->handle();
    *ask.mutable_ring() = ring;
    EXPECT_TRUE(stream_->Write(ask));
    EXPECT_TRUE(stream_->Read(&answer_));
  }

  ~Offer() { context_.TryCancel(); }

  const v1::StepReply& answer() const { return answer_; }
  ProtoOnlyWorker& stranger() { return stranger_; }
  ProtoOnlyWorker::Stream* stream() { return stream_.get(); }
  // Returns the status with which the stream ends. Expects no more replies over gRPC.
  grpc::Status End() {
    v1::StepReply reply;
    EXPECT_FALSE(stream_->Read(&reply)) << reply.ShortDebugString();
    return stream_->Finish();
  }

 private:
  ProtoOnlyWorker stranger_;
  const std::unique_ptr<SharedMemory> gradients_;
  grpc::ClientContext context_;
  std::unique_ptr<ProtoOnlyWorker::Stream> stream_;
  v1::StepReply answer_;
};

class RingTest : public testing::Test {
 protected:
  RingTest() : cluster_(SharingCluster()), ring_(RingEndpoint::Create(1 << 20).value()) {
    EXPECT_TRUE(cluster_.StartChief().ok());
  }

  // Returns the next reply through the ring.
  v1::StepReply Await() {
    for (std::string message;;) {
      const uint32_t ticket = ring_->Ticket();
      v1::StepReply reply;
      if (ring_->Receive(&message).value()) {
        EXPECT_TRUE(reply.ParseFromString(message));
        return reply;
      }
      ring_->Wait(ticket, absl::InfiniteDuration());
    }
  }
  bool Send(const std::string& message) {
    ring_->BeginMessage(message.size());
    ring_->Append(message);
    return ring_->Flush().value();
  }
  // Expects that honest workers can still finish the run.
  void ExpectThatTheRunGoesOn() {
    const int worker = cluster_.StartWorker();
    EXPECT_TRUE(cluster_.Wait().ok());
    EXPECT_TRUE(cluster_.JoinWorker(worker).ok());
  }

  TestCluster cluster_;
  const std::unique_ptr<RingEndpoint> ring_;
};

TEST_F(RingTest, CarriesFramesAndEndsOverGrpc) {
  Offer offer(&cluster_, ring_->handle());
  ASSERT_TRUE(ring_->Attach(offer.answer().ring()).ok());
  EXPECT_FALSE(offer.answer().has_token());
  const v1::StepReply reply = Await();
  EXPECT_TRUE(reply.has_token());
  EXPECT_TRUE(reply.has_values_memory());
  v1::StepRequest leave = offer.stranger().AskForToken();
  leave.set_end(false);
  leave.set_leave(true);
  EXPECT_TRUE(Send(leave.SerializeAsString()));
  EXPECT_TRUE(offer.End().ok());
  v1::WatchRunReply watched;
  cluster_.chief()->FillWatch(&watched);
  const v1::RunCounters& counters = watched.counters();
  EXPECT_EQ(counters.ring_bytes_received(), leave.ByteSizeLong());
  EXPECT_GT(counters.bytes_received(), counters.ring_bytes_received()) << "the offer came over gRPC";
  EXPECT_GT(counters.ring_bytes_sent(), 0);
  EXPECT_GT(counters.bytes_sent(), counters.ring_bytes_sent()) << "the answer went over gRPC";
  EXPECT_EQ(counters.unix_bytes_sent(), 0) << "the stream is TCP's";
}

TEST_F(RingTest, UnmappableMemoryKeepsFramesOnGrpc) {
  v1::SharedMemoryHandle handle = ring_->handle();
  handle.set_inode(handle.inode() + 1);
  const auto small = SharedMemory::Create(4096).value();
  for (const auto& each : {handle, small->handle(), v1::SharedMemoryHandle()}) {
    Offer offer(&cluster_, each);
    EXPECT_TRUE(offer.answer().has_ring());
    EXPECT_EQ(offer.answer().ring().bytes(), 0);
    v1::Token token;
    EXPECT_TRUE(offer.stranger().ReadToken(offer.stream(), &token));
  }
  Offer alone(&cluster_, ring_->handle(), /*shares=*/false);
  EXPECT_EQ(alone.answer().ring().bytes(), 0);
}

TEST(RingWithoutThreadTest, ARingWithoutAThreadStaysOnGrpc) {
  LimitedThreads no_rings(0, "ring");
  TestCluster::Options options = SharingCluster();
  options.server.executor = &no_rings;
  TestCluster cluster(std::move(options));
  ASSERT_TRUE(cluster.StartChief().ok());
  {
    const auto ring = RingEndpoint::Create(1 << 20).value();
    Offer offer(&cluster, ring->handle());
    EXPECT_TRUE(offer.answer().has_ring());
    EXPECT_EQ(offer.answer().ring().bytes(), 0);
    v1::Token token;
    EXPECT_TRUE(offer.stranger().ReadToken(offer.stream(), &token));
  }
  EXPECT_EQ(no_rings.refused(), 1);
  const int worker = cluster.StartWorker();
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorker(worker).ok());
}

TEST_F(RingTest, AMessageBesideTheRingEndsTheStream) {
  Offer offer(&cluster_, ring_->handle());
  ASSERT_GT(offer.answer().ring().bytes(), 0);
  EXPECT_TRUE(offer.stream()->Write(offer.stranger().AskForToken()));
  const grpc::Status status = offer.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("on a stream that has a ring"));
}

TEST_F(RingTest, AMalformedMessageEndsTheStream) {
  Offer offer(&cluster_, ring_->handle());
  ASSERT_TRUE(ring_->Attach(offer.answer().ring()).ok());
  EXPECT_TRUE(Send("\xff\xff\xff"));
  EXPECT_EQ(offer.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ExpectThatTheRunGoesOn();
}

TEST_F(RingTest, ATooLongMessageEndsTheStream) {
  Offer offer(&cluster_, ring_->handle());
  ASSERT_TRUE(ring_->Attach(offer.answer().ring()).ok());
  ring_->BeginMessage((8 << 20) + 1);
  EXPECT_TRUE(ring_->Flush().value());
  EXPECT_EQ(offer.End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RingTest, InvalidMemoryEndsTheStreamAlone) {
  const auto memory = SharedMemory::Create(ring_->handle().bytes()).value();
  const uint64_t read = 1 << 30;  // beyond what was written to the ring
  std::memcpy(memory->data() + 64, &read, sizeof(read));
  Offer offer(&cluster_, memory->handle());
  ASSERT_GT(offer.answer().ring().bytes(), 0);
  const grpc::Status status = offer.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("has read what was not written"));
  ExpectThatTheRunGoesOn();
}

TEST_F(RingTest, AWorkerThatIsGoneTakesItsRingAlong) {
  {
    Offer offer(&cluster_, ring_->handle());
    ASSERT_TRUE(ring_->Attach(offer.answer().ring()).ok());
    EXPECT_TRUE(Await().has_token());
  }
  ExpectThatTheRunGoesOn();
}

}  // namespace
}  // namespace lockstep
