#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "lockstep/common/transport/connection/channel.h"
#include "lockstep/common/transport/grpc_step_stream.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

using Event = PolledStream::Event;
using ServerStream = grpc::ServerReaderWriter<v1::StepReply, v1::StepRequest>;

class ScriptedServer : public v1::ChiefService::Service {
 public:
  std::function<grpc::Status(ServerStream*)> step;

 private:
  grpc::Status Step(grpc::ServerContext*, ServerStream* stream) override { return step(stream); }
};

class PolledStreamTest : public ::testing::Test {
 protected:
  void Open(std::function<grpc::Status(ServerStream*)> step) {
    service_.step = std::move(step);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    stream_ =
        std::make_unique<PolledStream>(NewChannel(absl::StrCat("127.0.0.1:", port)), "/lockstep.v1.ChiefService/Step");
  }
  Event Next() { return stream_->Poll(absl::InfiniteDuration()); }
  void WriteSession(uint64_t session) {
    v1::StepRequest request;
    request.set_session_id(session);
    const grpc::Slice slice(request.SerializeAsString());
    stream_->Write(grpc::ByteBuffer(&slice, 1));
  }

  ScriptedServer service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<PolledStream> stream_;  // destroyed first
};

TEST_F(PolledStreamTest, MovesMessagesBothWaysInsidePoll) {
  Open([](ServerStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    v1::StepReply reply;
    reply.set_values_step(static_cast<int64_t>(request.session_id()));
    stream->Write(reply);
    return grpc::Status(grpc::StatusCode::ABORTED, "enough");
  });
  EXPECT_FALSE(stream_->started());
  ASSERT_EQ(Next(), Event::kStarted);
  EXPECT_TRUE(stream_->started());
  stream_->Read();
  WriteSession(41);
  EXPECT_TRUE(stream_->reading());
  EXPECT_TRUE(stream_->writing());
  bool read = false, written = false;
  while (!read || !written) {
    const Event event = Next();
    read |= event == Event::kRead;
    written |= event == Event::kWritten;
    ASSERT_TRUE(event == Event::kRead || event == Event::kWritten);
  }
  EXPECT_FALSE(stream_->reading());
  EXPECT_FALSE(stream_->writing());
  grpc::Slice slice;
  ASSERT_TRUE(stream_->received()->DumpToSingleSlice(&slice).ok());
  v1::StepReply reply;
  ASSERT_TRUE(reply.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  EXPECT_EQ(reply.values_step(), 41);
  stream_->Read();
  EXPECT_EQ(Next(), Event::kFailedRead);
  EXPECT_EQ(stream_->Finish(), absl::AbortedError("enough"));
}

TEST_F(PolledStreamTest, PollWithoutWaitingFindsNothing) {
  Open([](ServerStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    return grpc::Status::OK;
  });
  ASSERT_EQ(Next(), Event::kStarted);
  EXPECT_EQ(stream_->Poll(absl::ZeroDuration()), Event::kNone);
  stream_->Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream_->Finish()));
}

TEST_F(PolledStreamTest, WakeEndsAPollOfAnotherThread) {
  Open([](ServerStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    return grpc::Status::OK;
  });
  ASSERT_EQ(Next(), Event::kStarted);
  std::thread waker([this] { stream_->Wake(); });
  EXPECT_EQ(Next(), Event::kWoken);
  waker.join();
  stream_->Cancel();
  EXPECT_FALSE(stream_->Finish().ok());
}

TEST_F(PolledStreamTest, CancelFailsPendingOperations) {
  Open([](ServerStream* stream) {
    v1::StepRequest request;
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  });
  ASSERT_EQ(Next(), Event::kStarted);
  stream_->Read();
  stream_->Cancel();
  EXPECT_EQ(Next(), Event::kFailedRead);
  EXPECT_TRUE(absl::IsCancelled(stream_->Finish()));
}

TEST_F(PolledStreamTest, AServerThatIsNotThereFailsTheStart) {
  stream_ = std::make_unique<PolledStream>(NewChannel("127.0.0.1:1"), "/lockstep.v1.ChiefService/Step");
  EXPECT_EQ(Next(), Event::kFailedOther);
  EXPECT_TRUE(absl::IsUnavailable(stream_->Finish()));
}

}  // namespace
}  // namespace lockstep
