// Sends a variable that exceeds the limits of gRPC and protobuf over the wire, and saves and restores it.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/chief_server.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = LOCKSTEP_TEST_ELEMENTS;
constexpr int64_t kBytes = kElements * int64_t{sizeof(float)};
// The number of elements in a frame. A frame exceeds gRPC's default limit of 4 MiB.
constexpr int64_t kFrameElements = 20 * 65536;

// Two copies of a step's values and one gradient.
constexpr int64_t kNeededBytes = 4 * kBytes;

int64_t AvailableBytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    int64_t kilobytes = 0;
    if (word == "MemAvailable:" && info >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

// A chief, and a client that does not compute. The client sends f + 1 as the gradient of each element in frame f, so
// the element's value decreases by f + 1 in each step.
class LargeRun {
 public:
  LargeRun(const std::string& logdir, int64_t steps) {
    config::v1::RunSpec config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "optimizer { sgd {} learning_rate { initial: 1 } } checkpoint { keep: 1 }", &config));
    config.mutable_training()->set_steps(steps);
    config.mutable_training()->set_replicas_to_aggregate(1);
    ApplyDefaults(&config);
    Chief::Options options;
    options.fs = FileSystem::Real();
    options.clock = Clock::Real();
    options.logdir = logdir;
    options.config = config;
    auto chief = Chief::Create(std::move(options));
    EXPECT_TRUE(chief.ok()) << chief.status();
    chief_ = *std::move(chief);
    server_ = ChiefServer::Start(ChiefServer::Options(), chief_.get()).value();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = v1::ChiefService::NewStub(
        grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments));
  }

  // Gets the values of step `first`, which must be the chief's step. Then, unless `only_look`, contributes to all steps
  // until the end of the run.
  void Train(int64_t first, bool only_look) {
    v1::OpenSessionRequest open;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("variables { name: 'large' dtype: DT_FLOAT shape: ", kElements, " trainable: true }"),
        open.mutable_model()));
    CompleteDeclaration(&open);
    grpc::ClientContext open_context, context;
    const grpc::Status opened = stub_->OpenSession(&open_context, open, &session_);
    ASSERT_TRUE(opened.ok()) << opened.error_message();
    EXPECT_EQ(session_.global_step(), first);
    const auto stream = stub_->Step(&context);
    v1::StepRequest ask;
    ask.set_session_id(session_.session_id());
    ask.set_generation(session_.generation());
    v1::StepRequest leave = ask;
    ask.set_end(true);
    leave.set_leave(true);
    EXPECT_TRUE(stream->Write(ask));
    std::thread waiter([&] { EXPECT_EQ(chief_->ends()->Wait().ok(), !only_look); });
    v1::StepReply reply;
    while (stream->Read(&reply) && !reply.finished()) {
      Check(reply);
      if (!reply.has_token()) continue;
      EXPECT_EQ(received_[reply.token().step()], kElements);
      if (only_look) break;
      Push(reply.token(), stream.get());
    }
    EXPECT_EQ(reply.finished(), !only_look);
    stream->Write(leave);
    EXPECT_TRUE(stream->Finish().ok());
    if (only_look) chief_->ends()->RequestStop();
    waiter.join();
  }

 private:
  void Check(const v1::StepReply& reply) {
    for (const v1::TensorPiece& piece : reply.value()) {
      std::vector<float> values(piece.content().size() / sizeof(float));
      std::memcpy(values.data(), piece.content().data(), piece.content().size());
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t frame = (static_cast<int64_t>(piece.offset()) + static_cast<int64_t>(i)) / kFrameElements;
        ASSERT_EQ(values[i], -static_cast<float>((frame + 1) * reply.values_step())) << piece.offset() + i;
      }
      received_[reply.values_step()] += static_cast<int64_t>(values.size());
    }
  }

  void Push(const v1::Token& token, grpc::ClientReaderWriter<v1::StepRequest, v1::StepReply>* stream) {
    for (int64_t offset = 0; offset < kElements; offset += kFrameElements) {
      v1::StepRequest frame;
      frame.set_session_id(session_.session_id());
      frame.set_generation(session_.generation());
      frame.set_step(token.step());
      frame.set_slot_count(1);
      if (offset == 0) frame.add_report();
      const std::vector<float> gradient(std::min(kFrameElements, kElements - offset),
                                        static_cast<float>(offset / kFrameElements + 1));
      v1::TensorPiece* const piece = frame.add_gradient();
      piece->set_offset(static_cast<uint64_t>(offset));
      piece->set_content(gradient.data(), gradient.size() * sizeof(float));
      frame.set_end(offset + kFrameElements >= kElements);
      ASSERT_TRUE(stream->Write(frame));
    }
  }

  std::unique_ptr<Chief> chief_;
  std::unique_ptr<ChiefServer> server_;
  std::unique_ptr<v1::ChiefService::Stub> stub_;
  v1::OpenSessionReply session_;
  std::map<int64_t, int64_t> received_;  // elements by step
};

TEST(LargeVariableTest, SurvivesTheWireAndACheckpoint) {
  if (AvailableBytes() < kNeededBytes) {
    GTEST_SKIP() << kNeededBytes << " bytes of memory are needed, " << AvailableBytes() << " are available";
  }
  const std::string logdir = testing::TempDir() + "large_variable";
  LargeRun(logdir, /*steps=*/1).Train(/*first=*/0, /*only_look=*/false);
  LargeRun(logdir, /*steps=*/2).Train(/*first=*/1, /*only_look=*/true);
  FileSystem* const fs = FileSystem::Real();
  const std::vector<std::string> names = fs->ListDirectory(logdir).value();
  for (const std::string& name : names) {
    EXPECT_TRUE(fs->Remove(JoinPath(logdir, name)).ok());
  }
}

}  // namespace
}  // namespace lockstep
