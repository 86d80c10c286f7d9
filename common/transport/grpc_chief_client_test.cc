// Tests the worker's end over a real socket, against a chief that each test scripts.
#include "lockstep/common/transport/grpc_chief_client.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/v1/chief.grpc.pb.h"
#include "proto/grpc/health.grpc.pb.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using StepStream = grpc::ServerReaderWriter<v1::StepReply, v1::StepRequest>;

class ScriptedChief : public v1::ChiefService::Service {
 public:
  std::function<grpc::Status(StepStream*)> step;
  std::function<void()> heartbeat;
  grpc::Status unary;
  std::set<std::string> peers;  // that called GetRunSpec

 private:
  grpc::Status Step(grpc::ServerContext*, StepStream* stream) override { return step(stream); }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest*, v1::HeartbeatReply* reply) override {
    if (heartbeat) heartbeat();
    reply->set_global_step(7);
    return unary;
  }
  grpc::Status GetRunSpec(grpc::ServerContext* context, const v1::GetRunSpecRequest*,
                          v1::GetRunSpecReply* reply) override {
    peers.insert(context->peer());
    reply->set_generation(3);
    return unary;
  }
};

class ScriptedHealth : public grpc::health::v1::Health::Service {
 public:
  grpc::health::v1::HealthCheckResponse::ServingStatus status = grpc::health::v1::HealthCheckResponse::SERVING;

 private:
  grpc::Status Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest*,
                     grpc::health::v1::HealthCheckResponse* response) override {
    response->set_status(status);
    return grpc::Status::OK;
  }
};

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

void AddValue(uint32_t variable, uint64_t offset, const std::vector<float>& values, v1::StepReply* reply) {
  v1::TensorPiece* piece = reply->add_value();
  piece->set_variable(variable);
  piece->set_offset(offset);
  piece->set_content(Floats(values));
}

// Returns all values of a step: a = {step, 1}, b = {2}.
v1::StepReply Values(int64_t step) {
  v1::StepReply reply;
  reply.set_values_step(step);
  AddValue(0, 0, {static_cast<float>(step), 1}, &reply);
  AddValue(1, 0, {2}, &reply);
  return reply;
}

v1::StepReply TokenFor(int64_t step) {
  v1::StepReply reply;
  reply.mutable_token()->set_step(step);
  reply.mutable_token()->set_slot_count(1);
  return reply;
}

class GrpcChiefClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&chief_);
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    Connect({});
  }
  void Connect(const GrpcClientOptions& options) {
    client_ = NewGrpcChiefClient(absl::StrCat("127.0.0.1:", port_), options);
  }

  // Opens the stream of a model with a[2] and b[1] to a chief that runs `step`.
  void Open(std::function<grpc::Status(StepStream*)> step) {
    chief_.step = std::move(step);
    const auto model = Parse<v1::ModelSpec>(R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
                                                 variables { name: "b" dtype: DT_FLOAT shape: 1 trainable: true })pb");
    ChiefClient::StepOptions options;
    options.session_id = 5;
    options.generation = 3;
    options.chief_memory = offer_;
    auto channel = client_->OpenStepChannel(options, model);
    ASSERT_TRUE(channel.ok()) << channel.status();
    channel_ = *std::move(channel);
  }

  // Returns the worker's error for a chief that answers its first frame with `replies`.
  std::string ErrorAfter(const std::vector<v1::StepReply>& replies,
                         absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    Open([replies](StepStream* stream) {
      v1::StepRequest request;
      stream->Read(&request);
      for (const v1::StepReply& reply : replies) stream->Write(reply);
      while (stream->Read(&request)) {
      }
      return grpc::Status::OK;
    });
    const auto assignment = channel_->AwaitToken();
    EXPECT_FALSE(assignment.ok());
    EXPECT_EQ(channel_->AwaitToken().status(), assignment.status()) << "it stays broken";
    EXPECT_EQ(assignment.status().code(), code) << assignment.status();
    return std::string(assignment.status().message());
  }

  // OpenSessionReply.shared_memory.
  absl::optional<v1::SharedMemoryHandle> offer_;
  int port_ = 0;
  ScriptedChief chief_;
  ScriptedHealth health_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;  // destroyed first
};

// The scripted chief accepts messages of up to 4 MiB.
TEST_F(GrpcChiefClientTest, ReportsTravelInSeveralFrames) {
  const std::vector<size_t> update_bytes = {10 << 20, 4, 3 << 20};
  std::vector<v1::SlotReport> reports(3), received;
  for (size_t slot = 0; slot < reports.size(); ++slot) {
    reports[slot].set_slot(static_cast<int64_t>(slot));
    reports[slot].set_loss(0.5f);
    for (const size_t bytes : update_bytes) reports[slot].add_update(std::string(bytes, static_cast<char>('a' + slot)));
  }
  ReportJoiner joiner;
  ReportJoiner::Options model;
  model.reports = 3;
  model.updates = 3;
  model.update_bytes = (13 << 20) + 4;
  joiner.Begin(model);
  Open([&](StepStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    stream->Write(Values(7));
    stream->Write(TokenFor(7));
    do {
      if (!stream->Read(&request)) return grpc::Status::OK;
      for (const v1::SlotReport& part : request.report()) EXPECT_TRUE(joiner.Add(part, /*keep=*/true).ok());
    } while (!request.end());
    v1::StepReply reply;
    reply.set_finished(true);
    stream->Write(reply);
    return grpc::Status::OK;
  });
  ASSERT_TRUE(channel_->AwaitToken().ok());
  EXPECT_TRUE(channel_->SendReports(reports).ok());
  const auto end = channel_->AwaitToken();
  EXPECT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(joiner.complete());
  received = joiner.kept();
  ASSERT_EQ(received.size(), reports.size());
  for (size_t slot = 0; slot < reports.size(); ++slot) {
    EXPECT_TRUE(received[slot].SerializeAsString() == reports[slot].SerializeAsString()) << slot;
  }
}

TEST_F(GrpcChiefClientTest, OneRoundTripContributesAndGetsAToken) {
  std::vector<v1::StepRequest> requests;
  Open([&](StepStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    requests.push_back(request);
    stream->Write(Values(7));
    stream->Write(TokenFor(7));
    do {
      stream->Read(&request);
      requests.push_back(request);
    } while (!request.end());
    v1::StepReply reply;
    reply.set_result(v1::CONTRIBUTION_ACCEPTED);
    reply.set_finished(true);
    reply.set_finish_message("done");
    stream->Write(reply);
    stream->Read(&request);
    requests.push_back(request);
    return grpc::Status::OK;
  });
  auto assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->token.step(), 7);
  EXPECT_EQ(assignment->values[0][0], 7);
  EXPECT_EQ(assignment->values[1][0], 2);
  ASSERT_TRUE(channel_->SendReports({Parse<v1::SlotReport>("slot: 0 loss: 1.5")}).ok());
  channel_->GradientBuffer(1)[0] = -1;
  ASSERT_TRUE(channel_->SendGradient(1).ok());
  channel_->GradientBuffer(0)[0] = channel_->GradientBuffer(0)[1] = 4;
  ASSERT_TRUE(channel_->SendGradient(0).ok());
  assignment = channel_->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_TRUE(assignment->finished);
  EXPECT_EQ(assignment->finish_message, "done");
  EXPECT_EQ(assignment->result, v1::CONTRIBUTION_ACCEPTED);
  channel_->Leave();

  ASSERT_EQ(requests.size(), 3u) << "small gradients leave in one frame";
  for (const v1::StepRequest& request : requests) {
    EXPECT_EQ(request.session_id(), 5u);
    EXPECT_EQ(request.generation(), 3);
  }
  EXPECT_EQ(requests[0].slot_count(), 0);
  EXPECT_EQ(requests[1].step(), 7);
  EXPECT_EQ(requests[1].report(0).loss(), 1.5f);
  ASSERT_EQ(requests[1].gradient_size(), 2);
  EXPECT_EQ(requests[1].gradient(0).variable(), 1u);
  EXPECT_EQ(requests[1].gradient(0).content(), Floats({-1}));
  EXPECT_EQ(requests[1].gradient(1).content(), Floats({4, 4}));
  EXPECT_TRUE(requests[2].leave());
}

// The values of the next step may arrive early. A second token of this step must still be computed with this step's
// values.
TEST_F(GrpcChiefClientTest, KeepsOldValuesUntilTheNextStepsToken) {
  Open([](StepStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    stream->Write(Values(7));
    stream->Write(TokenFor(7));
    stream->Read(&request);
    stream->Write(Values(8));
    stream->Write(TokenFor(7));
    stream->Read(&request);
    stream->Write(TokenFor(8));
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  });
  std::vector<float> seen;
  for (int i = 0; i < 3; ++i) {
    const auto assignment = channel_->AwaitToken();
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    seen.push_back(assignment->values[0][0]);
  }
  EXPECT_THAT(seen, ElementsAre(7, 7, 8));
}

// A worker waits for its first token while others work on step 7. The step almost ends without this worker, but then
// needs it.
TEST_F(GrpcChiefClientTest, WaitingKeepsCompleteValues) {
  Open([](StepStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    v1::StepReply part;
    part.set_values_step(8);
    AddValue(0, 0, {8, 8}, &part);
    for (const v1::StepReply& reply : {Values(6), Values(7), part, TokenFor(7)}) stream->Write(reply);
    stream->Read(&request);
    part.clear_value();
    AddValue(1, 0, {2}, &part);
    stream->Write(part);
    stream->Write(TokenFor(8));
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  });
  std::vector<float> seen;
  for (int i = 0; i < 2; ++i) {
    const auto assignment = channel_->AwaitToken();
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    seen.push_back(assignment->values[0][0]);
  }
  EXPECT_THAT(seen, ElementsAre(7, 8));
}

TEST_F(GrpcChiefClientTest, TensorsLieInSharedMemoryIfAllowed) {
  const auto chief_memory = SharedMemory::Create(1).value();
  offer_ = chief_memory->handle();
  const auto values = SharedMemory::Create((16 + 16) * sizeof(float)).value();
  reinterpret_cast<float*>(values->data())[16] = 3;  // b, at the next multiple of 64 bytes
  std::vector<v1::StepRequest> requests(3);
  float gradient = 0;
  Open([&](StepStream* stream) {
    v1::StepReply reply = TokenFor(7);
    stream->Read(&requests[0]);
    stream->Write(Values(7));
    stream->Write(reply);
    stream->Read(&requests[1]);
    *reply.mutable_values_memory() = values->handle();
    stream->Write(reply);
    stream->Read(&requests[2]);
    const auto memory = SharedMemory::Map(requests[0].gradient_memory());
    if (memory.ok() && requests[2].gradient_size() == 2) {
      gradient = *reinterpret_cast<const float*>((*memory)->data() + requests[2].gradient(1).shared().offset());
    }
    reply.Clear();
    reply.set_finished(true);
    stream->Write(reply);
    v1::StepRequest leave;
    stream->Read(&leave);
    return grpc::Status::OK;
  });
  const auto send = [this](float b) {
    ASSERT_TRUE(channel_->SendReports({v1::SlotReport()}).ok());
    channel_->GradientBuffer(1)[0] = b;
    ASSERT_TRUE(channel_->SendGradient(0).ok());
    ASSERT_TRUE(channel_->SendGradient(1).ok());
  };
  ASSERT_TRUE(channel_->AwaitToken().ok());
  send(5);
  const auto shared = channel_->AwaitToken();
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->values[1][0], 3);
  send(6);
  ASSERT_TRUE(channel_->AwaitToken().ok());
  channel_->Leave();
  EXPECT_TRUE(requests[0].has_gradient_memory());
  ASSERT_EQ(requests[1].gradient_size(), 2);
  EXPECT_EQ(requests[1].gradient(1).content().size(), sizeof(float)) << "the token came with values that travelled";
  ASSERT_EQ(requests[2].gradient_size(), 2);
  EXPECT_EQ(requests[2].gradient(1).content().size(), 0u);
  EXPECT_EQ(requests[2].gradient(1).shared().bytes(), sizeof(float));
  EXPECT_EQ(gradient, 6);
}

TEST_F(GrpcChiefClientTest, OffersNoMemoryToAnUnreachableChief) {
  const auto chief_memory = SharedMemory::Create(1).value();
  offer_ = chief_memory->handle();
  offer_->set_inode(offer_->inode() + 1);  // as in another container, where the path names a different file
  v1::StepRequest first;
  Open([&first](StepStream* stream) {
    stream->Read(&first);
    return grpc::Status(grpc::StatusCode::ABORTED, "enough");
  });
  EXPECT_TRUE(absl::IsAborted(channel_->AwaitToken().status()));
  EXPECT_FALSE(first.has_gradient_memory());
}

TEST_F(GrpcChiefClientTest, ARingThatIsGoneEndsAsItsStreamDoes) {
  const auto chief_memory = SharedMemory::Create(1).value();
  offer_ = chief_memory->handle();
  v1::StepReply answer;
  *answer.mutable_ring() = SharedMemory::Create(4096).value()->handle();  // which the chief has already dropped
  Open([&answer](StepStream* stream) {
    v1::StepRequest first;
    stream->Read(&first);
    stream->Write(answer);
    stream->Write(v1::StepReply());  // precedes the end
    return grpc::Status(grpc::StatusCode::ABORTED, "variables were set");
  });
  const absl::Status status = channel_->AwaitToken().status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
}

TEST_F(GrpcChiefClientTest, UnreachableMemoryIsUnavailable) {
  const auto memory = SharedMemory::Create(32 * sizeof(float)).value();
  v1::StepReply reply = TokenFor(7);
  *reply.mutable_values_memory() = memory->handle();
  reply.mutable_values_memory()->set_machine("another");
  EXPECT_THAT(ErrorAfter({reply}, absl::StatusCode::kUnavailable), HasSubstr("is not within reach"))
      << "the chief died between its token and now, and may come back";
}

TEST_F(GrpcChiefClientTest, RefusesValuesInMemoryOfAnotherSize) {
  const auto memory = SharedMemory::Create(31 * sizeof(float)).value();
  v1::StepReply reply = TokenFor(7);
  *reply.mutable_values_memory() = memory->handle();
  EXPECT_THAT(ErrorAfter({reply}), HasSubstr("the chief's memory has 124 bytes, the values 128"));
}

TEST_F(GrpcChiefClientTest, RefusesATokenWithoutItsValues) {
  v1::StepReply part;
  part.set_values_step(7);
  AddValue(0, 0, {1, 2}, &part);
  EXPECT_THAT(ErrorAfter({part, TokenFor(7)}), HasSubstr("a token for step 7 without all values of that step"));
}

TEST_F(GrpcChiefClientTest, RefusesATokenOfAnotherStep) {
  EXPECT_THAT(ErrorAfter({Values(7), TokenFor(8)}), HasSubstr("a token for step 8 without all values"));
}

TEST_F(GrpcChiefClientTest, RefusesATokenOfNoSlots) {
  v1::StepReply reply = TokenFor(7);
  reply.mutable_token()->set_slot_count(0);
  EXPECT_THAT(ErrorAfter({Values(7), reply}), HasSubstr("a token for step 7"));
}

TEST_F(GrpcChiefClientTest, RefusesAValueThatTheModelLacks) {
  v1::StepReply reply;
  AddValue(2, 0, {1}, &reply);
  EXPECT_THAT(ErrorAfter({reply}), HasSubstr("a value for variable number 2"));
}

TEST_F(GrpcChiefClientTest, RefusesAValueBeyondItsVariable) {
  for (const auto& [offset, count] : std::vector<std::pair<uint64_t, size_t>>{{0, 3}, {1, 2}, {3, 1}, {1u << 31, 1}}) {
    v1::StepReply reply;
    AddValue(0, offset, std::vector<float>(count), &reply);
    EXPECT_THAT(ErrorAfter({reply}),
                HasSubstr(absl::StrCat("a value of a at element ", offset, " with ", count * 4, " bytes")));
  }
}

TEST_F(GrpcChiefClientTest, RefusesHalfAnElement) {
  v1::StepReply reply;
  AddValue(0, 0, {1}, &reply);
  reply.mutable_value(0)->mutable_content()->pop_back();
  EXPECT_THAT(ErrorAfter({reply}), HasSubstr("with 3 bytes"));
}

TEST_F(GrpcChiefClientTest, ReportsWhyTheChiefEndedTheStream) {
  Open([](StepStream*) { return grpc::Status(grpc::StatusCode::ABORTED, "generation 2 is over"); });
  const auto status = channel_->AwaitToken().status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(status.message(), "generation 2 is over");
  EXPECT_EQ(channel_->SendGradient(0), status);
}

TEST_F(GrpcChiefClientTest, AStreamThatJustEndsIsUnavailable) {
  Open([](StepStream*) { return grpc::Status::OK; });
  const auto status = channel_->AwaitToken().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(GrpcChiefClientTest, UnaryErrorsKeepTheirCodeAndMessage) {
  const auto reply = client_->GetRunSpec();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->generation(), 3);
  chief_.unary = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "not now");
  EXPECT_EQ(client_->GetRunSpec().status(), absl::FailedPreconditionError("not now"));
  const absl::Status unknown = client_->GetStatus().status();
  EXPECT_TRUE(absl::IsUnimplemented(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr(" is no Lockstep chief, or one of another release"));
}

// The caller did not cancel the call, and may try again.
TEST_F(GrpcChiefClientTest, CancellationByChiefIsUnavailable) {
  chief_.unary = grpc::Status::CANCELLED;
  const absl::Status status = client_->GetRunSpec().status();
  EXPECT_EQ(status, absl::UnavailableError("the chief shut down during the call"));
}

// The number of earlier refusals does not matter, because the delay between attempts does not grow.
TEST_F(GrpcChiefClientTest, FindsAChiefThatComesAfterRefusals) {
  const auto refused = absl::UnavailableError("connection refused: no process listens there");
  const std::string target = absl::StrCat("127.0.0.1:", port_);
  server_->Shutdown();
  server_.reset();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client_->GetRunSpec().status(), refused);
    EXPECT_EQ(client_->GetStatus().status(), refused);
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target, grpc::InsecureServerCredentials());
  builder.RegisterService(&chief_);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
  EXPECT_TRUE(client_->GetRunSpec().ok());
}

TEST_F(GrpcChiefClientTest, SaysThatANameCannotBeResolved) {
  // A name with an empty label is invalid, so the resolver rejects it without asking a server.
  const auto client = NewGrpcChiefClient("no..name:2222");
  EXPECT_THAT(std::string(client->GetRunSpec().status().message()),
              HasSubstr("the host name \"no..name\" cannot be resolved: "));
}

TEST_F(GrpcChiefClientTest, SaysThatAPortSpeaksTls) {
  // A TLS server that reads something other than a ClientHello behaves like this: it sends an alert and closes the
  // connection.
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  std::thread tls([listener] {
    const int connection = accept(listener, nullptr, nullptr);
    char preface[24];
    recv(connection, preface, sizeof(preface), MSG_WAITALL);
    send(connection, "\x15\x03\x03\x00\x02\x02\x46", 7, 0);
    close(connection);
    close(listener);
  });
  const auto client = NewGrpcChiefClient(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
  EXPECT_THAT(std::string(client->GetRunSpec().status().message()),
              HasSubstr("the port does not speak HTTP/2 in plain text; it may speak TLS"));
  tls.join();
}

// A simulated distant host: it starts to speak HTTP/2 half a second after it has accepted a connection, and answers no
// calls.
class FarHost {
 public:
  FarHost() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    target_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~FarHost() {
    over_ = true;
    thread_.join();
    for (const Connection& connection : connections_) close(connection.descriptor);
    close(listener_);
  }

  const std::string& target() const { return target_; }

 private:
  struct Connection {
    int descriptor = -1;
    absl::Time speaks_at;
  };

  void Serve() {
    while (!over_) {
      pollfd ready = {listener_, POLLIN, 0};
      if (poll(&ready, 1, /*timeout=*/10) > 0) {
        connections_.push_back({accept(listener_, nullptr, nullptr), absl::Now() + absl::Milliseconds(500)});
      }
      for (Connection& connection : connections_) {
        if (absl::Now() < connection.speaks_at) continue;
        const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
        send(connection.descriptor, settings.data(), settings.size(), MSG_NOSIGNAL);
        connection.speaks_at = absl::InfiniteFuture();
      }
    }
  }

  const int listener_;
  std::string target_;
  std::vector<Connection> connections_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST_F(GrpcChiefClientTest, ReachesAFarChiefNextToShortAttempts) {
  FarHost host;
  GrpcClientOptions options;
  options.connect_timeout = absl::Milliseconds(100);
  const auto client = NewGrpcChiefClient(host.target(), options);
  int attempts = 0;
  absl::Status status;
  do {
    status = client->GetRunSpec().status();
    ASSERT_TRUE(absl::IsUnavailable(status)) << status;
    ++attempts;
  } while (!absl::StrContains(status.message(), "it did not answer in time") && attempts < 1000);
  EXPECT_LT(attempts, 1000) << status;
  EXPECT_GT(attempts, 8) << "it took five when each waited for the host";
}

TEST_F(GrpcChiefClientTest, EveryClientHasAConnectionOfItsOwn) {
  ASSERT_TRUE(client_->GetRunSpec().ok());
  const auto other = NewGrpcChiefClient(absl::StrCat("127.0.0.1:", port_), {});
  ASSERT_TRUE(other->GetRunSpec().ok());
  EXPECT_EQ(chief_.peers.size(), 2u);
}

TEST_F(GrpcChiefClientTest, AChiefIsWellWhenItServes) {
  const std::string target = absl::StrCat("127.0.0.1:", port_);
  EXPECT_TRUE(CheckHealth(target, absl::Seconds(10)).ok());
  health_.status = grpc::health::v1::HealthCheckResponse::NOT_SERVING;
  EXPECT_EQ(CheckHealth(target, absl::Seconds(10)), absl::UnavailableError(target + " says NOT_SERVING"));
}

TEST_F(GrpcChiefClientTest, AContributionOutlivesACancelledWait) {
  std::vector<v1::StepRequest> requests;
  Open([&](StepStream* stream) {
    v1::StepRequest request;
    while (stream->Read(&request)) {
      requests.push_back(request);
      if (requests.size() == 1) {
        stream->Write(Values(7));
        stream->Write(TokenFor(7));
      }
      if (request.leave()) break;
    }
    return grpc::Status::OK;
  });
  ASSERT_TRUE(channel_->AwaitToken().ok());
  ASSERT_TRUE(channel_->SendReports({v1::SlotReport()}).ok());
  channel_->CancelWait();
  ASSERT_TRUE(channel_->SendGradient(0).ok());
  ASSERT_TRUE(channel_->SendGradient(1).ok());
  EXPECT_TRUE(absl::IsCancelled(channel_->AwaitToken().status()));
  channel_->Leave();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].gradient_size(), 2);
  EXPECT_TRUE(requests[1].end());
  EXPECT_TRUE(requests[2].leave());
  EXPECT_EQ(requests[2].slot_count(), 0);
}

TEST_F(GrpcChiefClientTest, TheGoodbyeArrivesAfterACancelledWait) {
  bool left = false;
  Open([this, &left](StepStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    channel_->CancelWait();
    stream->Read(&request);
    left = request.leave();
    return grpc::Status::OK;
  });
  EXPECT_TRUE(absl::IsCancelled(channel_->AwaitToken().status()));
  channel_->Leave();
  EXPECT_TRUE(left);
}

TEST_F(GrpcChiefClientTest, LeaveTimesOutOnAHungChief) {
  GrpcClientOptions options;
  options.leave_limit = absl::Milliseconds(1);
  Connect(options);
  Open([](StepStream* stream) {
    v1::StepRequest request;
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  });
  channel_->CancelWait();
  EXPECT_TRUE(absl::IsCancelled(channel_->AwaitToken().status()));
  channel_->Leave();
  EXPECT_FALSE(channel_->AwaitToken().ok());
}

TEST_F(GrpcChiefClientTest, ASilentHeartbeatEndsAtAnError) {
  std::promise<void> released;
  chief_.heartbeat = [future = released.get_future().share()] { future.wait(); };
  GrpcClientOptions options;
  options.silence_period = absl::Milliseconds(1);
  int calls = 0;
  options.on_silence = [&calls](const v1::HeartbeatRequest& heartbeat, absl::Duration silence) {
    EXPECT_EQ(heartbeat.generation(), 3);
    EXPECT_GT(silence, absl::ZeroDuration());
    return ++calls < 3 ? absl::OkStatus() : absl::AbortedError("replaced");
  };
  Connect(options);
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_generation(3);
  EXPECT_EQ(client_->Heartbeat(heartbeat).status(), absl::AbortedError("replaced"));
  EXPECT_EQ(calls, 3);
  released.set_value();
}

TEST_F(GrpcChiefClientTest, AHeartbeatReturnsTheReplyAfterSilence) {
  std::promise<void> released;
  chief_.heartbeat = [future = released.get_future().share()] { future.wait(); };
  GrpcClientOptions options;
  options.silence_period = absl::Milliseconds(1);
  options.on_silence = [&released, calls = 0](const v1::HeartbeatRequest&, absl::Duration) mutable {
    if (++calls == 2) released.set_value();
    return absl::OkStatus();
  };
  Connect(options);
  const auto reply = client_->Heartbeat({});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->global_step(), 7);
  chief_.unary = grpc::Status(grpc::StatusCode::ABORTED, "the session is unknown");
  EXPECT_EQ(client_->Heartbeat({}).status(), absl::AbortedError("the session is unknown"));
}

TEST_F(GrpcChiefClientTest, CancelEndsAWaitForAToken) {
  std::promise<void> cancelled;
  Open([&](StepStream* stream) {
    v1::StepRequest request;
    stream->Read(&request);
    channel_->Cancel();
    cancelled.set_value();
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  });
  EXPECT_TRUE(absl::IsCancelled(channel_->AwaitToken().status()));
  cancelled.get_future().wait();  // The channel must not be destroyed before.
}

}  // namespace
}  // namespace lockstep
