// Tests the table of limits in docs/wire.md, row by row. A peer exceeds the row's limit by one unit, over a real
// socket. It must get the answer that the row states, the memory of this process (the chief's and the peer's) must stay
// bounded, and the run must continue. Every row needs a probe, and every probe a row.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/tests/testing/gated_run.h"
#include "lockstep/tests/testing/http2_peer.h"
#include "lockstep/tests/testing/process_memory.h"
#include "lockstep/tests/testing/proto_only_worker.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/v1/chief.grpc.pb.h"
#include "proto/grpc/health.grpc.pb.h"

namespace lockstep {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr grpc::StatusCode kExhausted = grpc::StatusCode::RESOURCE_EXHAUSTED;
constexpr char kName[] = "stranger";
constexpr char kStep[] = "/lockstep.v1.ChiefService/Step";
// The limit on this process's descriptors, low enough that the test can reach the limit on connections. The process
// holds the descriptors of both ends.
constexpr rlim_t kDescriptors = 700;

// A run, and a foreign worker with a session.
class Target {
 public:
  explicit Target(int64_t version_bytes)
      : run_(version_bytes, Server()), stranger_(run_.address(), kName, 4711), stub_(stranger_.stub()) {}

  GatedRun* run() { return &run_; }
  ProtoOnlyWorker* stranger() { return &stranger_; }
  v1::ChiefService::Stub* stub() { return stub_; }

  // Returns the status code of calling `method` with `request`.
  template <typename Request, typename Reply>
  grpc::StatusCode Call(grpc::Status (v1::ChiefService::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                        const Request& request, Reply* reply = nullptr) {
    Reply ignored;
    grpc::ClientContext context;
    const grpc::Status status = (stub_->*method)(&context, request, reply == nullptr ? &ignored : reply);
    message_ = status.error_message();
    return status.error_code();
  }
  // Returns the message of the last call's status.
  const std::string& message() const { return message_; }

 private:
  static ChiefServer::Options Server() {
    ChiefServer::Options server;
    server.silence_limit = absl::Seconds(3);  // the default of ten seconds would only take longer
    return server;
  }

  GatedRun run_;
  ProtoOnlyWorker stranger_;
  v1::ChiefService::Stub* const stub_;
  std::string message_;
};

// Returns a message whose unknown field has `bytes` bytes.
template <typename Message>
Message Padded(size_t bytes) {
  Message message;
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(1000, std::string(bytes, 'x'));
  return message;
}

void ExceedMessage(Target* target) {
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::OpenSession, Padded<v1::OpenSessionRequest>(8 << 20)), kExhausted);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::OpenSessionReply reply;
  const auto request = Padded<v1::OpenSessionRequest>(8 << 20);
  EXPECT_EQ(target->stub()->OpenSession(&context, request, &reply).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

void ExceedSmallRequest(Target* target) {
  using Stub = v1::ChiefService::Stub;
  EXPECT_EQ(target->Call(&Stub::GetRunSpec, Padded<v1::GetRunSpecRequest>(4096)), kExhausted);
  EXPECT_EQ(target->Call(&Stub::GetCanaryValues, Padded<v1::GetCanaryValuesRequest>(4096)), kExhausted);
  EXPECT_EQ(target->Call(&Stub::Heartbeat, Padded<v1::HeartbeatRequest>(4096)), kExhausted);
  EXPECT_EQ(target->Call(&Stub::GetStatus, Padded<v1::GetStatusRequest>(4096)), kExhausted);
  EXPECT_EQ(target->Call(&Stub::RequestEnd, Padded<v1::RequestEndRequest>(4096)), kExhausted);
  grpc::ClientContext watch_context;
  EXPECT_EQ(target->stub()->WatchRun(&watch_context, Padded<v1::WatchRunRequest>(4096))->Finish().error_code(),
            kExhausted);
  const auto channel = grpc::CreateChannel(target->run()->address(), grpc::InsecureChannelCredentials());
  grpc::ClientContext health_context;
  grpc::health::v1::HealthCheckResponse health;
  EXPECT_EQ(grpc::health::v1::Health::NewStub(channel)
                ->Check(&health_context, Padded<grpc::health::v1::HealthCheckRequest>(4096), &health)
                .error_code(),
            kExhausted);
}

void ExceedOpenSession(Target* target) {
  // Each element takes two bytes on the wire, and about 100 bytes once parsed.
  v1::OpenSessionRequest bomb;
  for (int i = 0; i < 3 << 20; ++i) bomb.mutable_model()->add_variables();
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::OpenSession, bomb), kExhausted) << target->message();
}

void ExceedReadRequest(Target* target) {
  v1::ReadVariablesRequest request;
  for (int i = 0; i < 64; ++i) request.add_name(std::string(1024, 'x'));
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::ReadVariables, request), kExhausted);
}

void ExceedSummaryRequest(Target* target) {
  v1::AddSummaryRequest request;
  request.set_summary(std::string(1 << 20, 'x'));
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::AddSummary, request), kExhausted);
}

void ExceedInitialValuesRequest(Target* target) {
  v1::SetInitialValuesRequest request;
  request.add_value()->set_content(std::string(1 << 20, 'x'));
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::SetInitialValues, request), kExhausted);
}

// Uses a separate run, because the run must be new.
void ExceedInitialValues(Target* target) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1000, /*slots=*/1);
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  const auto client = cluster.NewClient();
  v1::OpenSessionRequest open = target->stranger()->open_request();
  open.set_initial_values_digest(std::string(64, '0'));
  const auto first = client->OpenSession(open);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->initial_values_wanted());
  open.set_incarnation(2);
  EXPECT_TRUE(absl::IsUnavailable(client->OpenSession(open).status())) << "one worker at a time";
  v1::SetInitialValuesRequest more;
  more.set_session_id(first->session_id());
  more.set_generation(first->generation());
  more.add_value()->set_content(std::string(1 << 19, 'x'));
  more.mutable_value(0)->set_offset(1 << 30);
  const absl::Status status = client->SetInitialValues(more).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not fit into the initial value"));
}

void ExceedReads(Target* target) {
  v1::ReadVariablesReply reply;
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(target->Call(&v1::ChiefService::Stub::ReadVariables, v1::ReadVariablesRequest(), &reply),
              grpc::StatusCode::OK);
    ASSERT_NE(reply.next_position(), 0) << "the read is over already";
  }
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::ReadVariables, v1::ReadVariablesRequest()),
            grpc::StatusCode::UNAVAILABLE);
}

void ExceedNames(Target* target) {
  const std::string name(257, 'x');
  const std::vector<std::function<void(v1::OpenSessionRequest*)>> all = {
      [&](v1::OpenSessionRequest* open) { open->set_worker(name); },
      [&](v1::OpenSessionRequest* open) { open->set_host(name); },
      [&](v1::OpenSessionRequest* open) { open->set_run_id(name); },
      [&](v1::OpenSessionRequest* open) { open->mutable_build()->set_version(name); },
      [&](v1::OpenSessionRequest* open) { open->mutable_build()->set_revision(name); },
      [&](v1::OpenSessionRequest* open) { open->mutable_build()->set_compiler(name); },
      [&](v1::OpenSessionRequest* open) { open->mutable_build()->set_instruction_set(name); },
  };
  for (const auto& set : all) {
    v1::OpenSessionRequest open = target->stranger()->open_request();
    set(&open);
    EXPECT_EQ(target->Call(&v1::ChiefService::Stub::OpenSession, open), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(target->message(), HasSubstr("257 bytes; at most 256"));
  }
  v1::RequestEndRequest end;
  end.set_reason(name);
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::RequestEnd, end), grpc::StatusCode::INVALID_ARGUMENT);
  // Sessions must not keep unknown fields.
  for (uint64_t i = 0; i < 20; ++i) {
    v1::OpenSessionRequest open = target->stranger()->open_request();
    open.set_incarnation(i);
    v1::BuildInfo* const build = open.mutable_build();
    build->GetReflection()->MutableUnknownFields(build)->AddLengthDelimited(1000, std::string(7 << 20, 'x'));
    EXPECT_EQ(target->Call(&v1::ChiefService::Stub::OpenSession, open), grpc::StatusCode::OK) << target->message();
  }
}

// Sends the frames on a stream. Returns the status with which the stream ends.
grpc::Status StepWith(Target* target, const std::vector<v1::StepRequest>& frames) {
  grpc::ClientContext context;
  const auto stream = target->stranger()->NewStream(&context);
  for (const v1::StepRequest& frame : frames) stream->Write(frame);
  v1::StepReply reply;
  while (stream->Read(&reply)) {
  }
  return stream->Finish();
}

void ExceedFirstFrame(Target* target) {
  v1::StepRequest first = target->stranger()->AskForToken();
  first.GetReflection()->MutableUnknownFields(&first)->AddLengthDelimited(1000, std::string(4096, 'x'));
  EXPECT_EQ(StepWith(target, {first}).error_code(), kExhausted);
}

// Sends a contribution modified by `change` on a stream. Returns the status with which the stream ends.
grpc::Status Contribute(Target* target, const std::function<void(v1::StepRequest*)>& change) {
  ProtoOnlyWorker* const stranger = target->stranger();
  grpc::ClientContext context;
  const auto stream = stranger->NewStream(&context);
  EXPECT_TRUE(stream->Write(stranger->AskForToken()));
  v1::Token token;
  EXPECT_TRUE(stranger->ReadToken(stream.get(), &token));
  v1::StepRequest whole = stranger->Compute(token);
  change(&whole);
  stream->Write(whole);
  EXPECT_FALSE(stranger->ReadToken(stream.get(), &token));
  return stream->Finish();
}

void ExceedFrame(Target* target) {
  int64_t segments = 0;
  for (const v1::VariableSpec& variable : target->stranger()->model().variables()) {
    int64_t elements = 1;
    for (const int64_t size : variable.shape()) elements *= size;
    const auto piece = static_cast<int64_t>(target->stranger()->session().piece_elements());
    segments += (elements + piece - 1) / piece;
  }
  const grpc::Status pieces = Contribute(target, [segments](v1::StepRequest* frame) {
    frame->clear_gradient();
    for (int64_t i = 0; i < segments + 1; ++i) frame->add_gradient();
  });
  EXPECT_EQ(pieces.error_code(), kExhausted) << pieces.error_message();
  const grpc::Status reports = Contribute(target, [](v1::StepRequest* frame) {
    frame->clear_gradient();
    frame->add_report();
  });
  EXPECT_EQ(reports.error_code(), kExhausted) << reports.error_message();
}

void ExceedReports(Target* target) {
  const grpc::Status status =
      Contribute(target, [](v1::StepRequest* frame) { frame->mutable_report(0)->add_update("1234"); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  const int64_t summary = MaxSummaryBytes(ParameterLayout::Create(target->stranger()->model()).value());
  const grpc::Status large = Contribute(target, [summary](v1::StepRequest* frame) {
    frame->mutable_report(0)->set_summary(std::string(static_cast<size_t>(summary + 1), 'x'));
  });
  EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << large.error_message();
  EXPECT_THAT(large.error_message(), HasSubstr("bytes; at most"));
}

// Uses a separate run, because the policy must not be DETERMINISTIC.
void ExceedStagedContributions(Target* /*target*/) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1000, /*slots=*/1);
  options.config.mutable_training()->mutable_async();
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker worker(cluster.address(), kName, 4712);
  ASSERT_NO_FATAL_FAILURE(worker.Open());
  grpc::ClientContext context;
  const auto stream = worker.NewStream(&context);
  ASSERT_TRUE(stream->Write(worker.AskForToken()));
  v1::Token token;
  ASSERT_TRUE(worker.ReadToken(stream.get(), &token));
  v1::StepRequest first = worker.Compute(token);
  first.clear_gradient();
  first.set_end(false);
  v1::StepRequest second = first;
  second.set_first_slot(first.first_slot() + 1);
  ASSERT_TRUE(stream->Write(first));
  stream->Write(second);
  EXPECT_FALSE(worker.ReadToken(stream.get(), &token));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("inside a contribution to"));
}

// An executor that delays the start of all pools' threads until Release.
class HeldPools : public Executor {
 public:
  void Release() { release_.set_value(); }

 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    if (name != "pool") return Executor::Threads()->TryStart(std::move(name), std::move(body), priority);
    return Executor::Threads()->TryStart(std::move(name), [released = released_, body = std::move(body)]() mutable {
      released.wait();
      body();
    });
  }

  std::promise<void> release_;
  const std::shared_future<void> released_ = release_.get_future().share();
};

// A chief without workers, and 2,064 calls of one method: 16 on each of 129 connections, because a connection may have
// no more while there are more than 1,024. No call is evicted because of its age.
template <typename Call>
class ManyCalls {
 public:
  static constexpr int kCalls = 2064;

  // Calls `begin` to begin each call, which must give `queue` the address of the call's status when the call has ended.
  ManyCalls(Executor* executor,
            const std::function<void(v1::ChiefService::Stub*, grpc::CompletionQueue* queue, Call*)>& begin)
      : cluster_(Options(executor)) {
    EXPECT_EQ(cluster_.StartChief(), absl::OkStatus());
    for (int i = 0; i < kCalls; ++i) {
      if (i % 16 == 0) {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // uses a separate connection
        stubs_.push_back(v1::ChiefService::NewStub(
            grpc::CreateCustomChannel(cluster_.address(), grpc::InsecureChannelCredentials(), arguments)));
      }
      calls_.push_back(std::make_unique<Call>());
      calls_.back()->context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
      begin(stubs_.back().get(), &queue_, calls_.back().get());
    }
  }

  TestCluster* cluster() { return &cluster_; }
  // Waits until a call has ended, and returns its status code.
  grpc::StatusCode Next() {
    void* status = nullptr;
    for (bool ok = false; status == nullptr;) EXPECT_TRUE(queue_.Next(&status, &ok));
    return static_cast<grpc::Status*>(status)->error_code();
  }
  void Cancel() {
    for (const auto& call : calls_) call->context.TryCancel();
  }

 private:
  static TestCluster::Options Options(Executor* executor) {
    TestCluster::Options options;
    options.config = SmallRunSpec(/*steps=*/1, /*slots=*/1);
    options.server.executor = executor;
    options.server.call_patience = absl::InfiniteDuration();
    options.server.silence_limit = absl::Minutes(1);
    return options;
  }

  TestCluster cluster_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<v1::ChiefService::Stub>> stubs_;
  std::vector<std::unique_ptr<Call>> calls_;
};

struct CanaryCall {
  grpc::ClientContext context;
  v1::GetCanaryValuesReply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::GetCanaryValuesReply>> reader;
};

void ExceedCanaryCalls(Target* /*target*/) {
  HeldPools pools;
  ManyCalls<CanaryCall> calls(&pools, [](auto* stub, auto* queue, CanaryCall* call) {
    call->reader = stub->AsyncGetCanaryValues(&call->context, v1::GetCanaryValuesRequest(), queue);
    call->reader->Finish(&call->reply, &call->status, &call->status);
  });
  for (int i = 2048; i < calls.kCalls; ++i) EXPECT_EQ(calls.Next(), grpc::StatusCode::UNAVAILABLE);
  pools.Release();
  for (int i = 0; i < 2048; ++i) EXPECT_EQ(calls.Next(), grpc::StatusCode::ABORTED) << "it names no session";
}

struct StepStreamCall {
  grpc::ClientContext context;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::StepRequest, v1::StepReply>> stream;
};

void ExceedYoungCalls() {
  ManyCalls<StepStreamCall> calls(Executor::Threads(), [](auto* stub, auto* queue, StepStreamCall* call) {
    call->stream = stub->AsyncStep(&call->context, queue, /*tag=*/nullptr);
    call->stream->Finish(&call->status, &call->status);
  });
  for (int i = 2048; i < calls.kCalls; ++i) {
    EXPECT_THAT(calls.Next(), AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED));
  }
  v1::WatchRunReply reply;
  grpc::ClientContext context;
  const auto channel = grpc::CreateChannel(calls.cluster()->address(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(v1::ChiefService::NewStub(channel)->WatchRun(&context, v1::WatchRunRequest())->Read(&reply));
  EXPECT_EQ(reply.counters().evicted_calls(), calls.kCalls - 2048 + 1) << "this call has evicted another one";
  context.TryCancel();
  calls.Cancel();
  for (int i = 0; i < 2048; ++i) calls.Next();
}

void ExceedUnauthenticatedCalls(Target* target) {
  ExceedYoungCalls();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<ProtoOnlyWorker::Stream>> streams;
  for (int i = 0; i < 65; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(target->stranger()->NewStream(contexts.back().get()));
  }
  EXPECT_THAT(streams[0]->Finish().error_code(), AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED));
  for (const auto& context : contexts) context->TryCancel();
}

void ExceedCalls(Target* target) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  const auto new_context = [&contexts] {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    return contexts.back().get();
  };
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchRunReply>>> watchers;
  std::vector<std::unique_ptr<ProtoOnlyWorker::Stream>> streams;
  const auto one_more = [target](int seconds) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
    v1::RunStatus status;
    return target->stub()->GetStatus(&context, v1::GetStatusRequest(), &status).error_code();
  };
  // Makes as many calls of both kinds as are allowed, all on one connection.
  for (int i = 0; i < 64; ++i) {
    watchers.push_back(target->stub()->WatchRun(new_context(), v1::WatchRunRequest()));
    v1::WatchRunReply reply;
    ASSERT_TRUE(watchers.back()->Read(&reply)) << watchers.back()->Finish().error_message();
  }
  for (int i = 0; i < 63; ++i) streams.push_back(target->stranger()->NewStream(new_context()));
  EXPECT_EQ(one_more(/*seconds=*/20), grpc::StatusCode::OK) << "the call number 128";
  streams.push_back(target->stranger()->NewStream(new_context()));
  EXPECT_EQ(one_more(/*seconds=*/1), grpc::StatusCode::DEADLINE_EXCEEDED) << "it waits";
  contexts.back()->TryCancel();
  EXPECT_EQ(streams.back()->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(one_more(/*seconds=*/20), grpc::StatusCode::OK) << "a place is free";
  for (const auto& context : contexts) context->TryCancel();
}

void ExceedLivingCalls(Target* target) {
  Http2Peer peer(target->run()->address());
  for (uint32_t stream = 1; stream < 2 * 1000; stream += 2) peer.Begin(stream, kStep);
  peer.ReadToTheEnd();
}

void ExceedHeaders(Target* target) {
  Http2Peer peer(target->run()->address());
  peer.Begin(1, kStep, std::string(8 << 10, 'x'));
  peer.ReadToTheEnd();
}

void ExceedConnections(Target* target) {
  // A connection whose descriptor is above the limit is closed, which frees the descriptor for the next one.
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (rlim_t i = 0; i < kDescriptors / 2; ++i) {
    peers.push_back(std::make_unique<Http2Peer>(target->run()->address()));
    if (!peers.back()->Read()) return;
  }
  ADD_FAILURE() << peers.size() << " connections were taken";
}

void ExceedGrpcMemory(Target* target) {
  // Begins 8 MiB messages, without finishing them, in more calls than are allowed without a session. Sends as much of
  // each message as the server reads before it knows which call it is.
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (int i = 0; i < 72; ++i) {
    peers.push_back(std::make_unique<Http2Peer>(target->run()->address()));
    peers.back()->Begin(1, "/lockstep.v1.ChiefService/OpenSession");
    peers.back()->SendPart(1, 8 << 20, 60000);
  }
  // The server ends the oldest call.
  auto frame = peers.front()->Read();
  while (frame && (frame->type != Http2Peer::kHeaders || frame->flags == Http2Peer::kEndHeaders)) {
    frame = peers.front()->Read();
  }
  ASSERT_TRUE(frame) << "the connection ended first";
  EXPECT_EQ(frame->stream, 1u);
}

void ExceedVersions(Target* target) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<ProtoOnlyWorker::Stream>> streams;
  for (int i = 0; i < 40; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(target->stranger()->NewStream(contexts.back().get()));
    ASSERT_TRUE(streams.back()->Write(target->stranger()->AskForToken()));
    target->run()->AwaitValues(kName);
    target->run()->Train(1);
  }
  v1::StepReply reply;
  while (streams[0]->Read(&reply)) {
  }
  EXPECT_THAT(streams[0]->Finish().error_code(), AnyOf(grpc::StatusCode::ABORTED, grpc::StatusCode::CANCELLED));
  for (const auto& context : contexts) context->TryCancel();
}

void ExceedUnreadReply(Target* target) {
  Http2Peer peer(target->run()->address());
  peer.Begin(1, kStep);
  peer.SendMessage(1, target->stranger()->AskForToken().SerializeAsString());
  target->run()->AwaitValues(kName);
  v1::StepRequest leave = target->stranger()->NewRequest(v1::Token());
  leave.set_leave(true);
  peer.SendMessage(1, leave.SerializeAsString());
  // The peer has not given the chief flow control window for the rest of the reply.
  auto frame = peer.Read();
  while (frame && frame->type != Http2Peer::kResetStream) frame = peer.Read();
  ASSERT_TRUE(frame) << "the connection ended first";
  EXPECT_EQ(frame->stream, 1u);
}

void ExceedStreams(Target* target) {
  grpc::ClientContext first_context, second_context;
  const auto first = target->stranger()->NewStream(&first_context);
  ASSERT_TRUE(first->Write(target->stranger()->AskForToken()));
  v1::Token token;
  ASSERT_TRUE(target->stranger()->ReadToken(first.get(), &token));
  const auto second = target->stranger()->NewStream(&second_context);
  ASSERT_TRUE(second->Write(target->stranger()->AskForToken()));
  EXPECT_FALSE(target->stranger()->ReadToken(first.get(), &token));
  EXPECT_THAT(first->Finish().error_code(), AnyOf(grpc::StatusCode::ABORTED, grpc::StatusCode::CANCELLED));
  EXPECT_TRUE(target->stranger()->ReadToken(second.get(), &token));
  second_context.TryCancel();
}

void ExceedReply(Target* target) {
  v1::GetCanaryValuesRequest canary;
  canary.set_session_id(target->stranger()->session().session_id());
  canary.set_generation(target->stranger()->session().generation());
  v1::GetCanaryValuesReply values;
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::GetCanaryValues, canary, &values), grpc::StatusCode::OK);
  EXPECT_LE(values.ByteSizeLong(), 1.1 * (1 << 20));
  v1::ReadVariablesReply read;
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::ReadVariables, v1::ReadVariablesRequest(), &read),
            grpc::StatusCode::OK);
  EXPECT_LE(read.ByteSizeLong(), 1.1 * (1 << 20));
  EXPECT_NE(read.next_position(), 0);
}

void ExceedSessions(Target* target) {
  v1::OpenSessionRequest open = target->stranger()->open_request();
  v1::OpenSessionReply first, reply;
  open.set_incarnation(0);
  ASSERT_EQ(target->Call(&v1::ChiefService::Stub::OpenSession, open, &first), grpc::StatusCode::OK);
  for (uint64_t i = 1; i <= 4096; ++i) {
    open.set_incarnation(i);
    ASSERT_EQ(target->Call(&v1::ChiefService::Stub::OpenSession, open, &reply), grpc::StatusCode::OK);
  }
  v1::HeartbeatRequest beat;
  beat.set_generation(first.generation());
  beat.set_session_id(first.session_id());
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::Heartbeat, beat), grpc::StatusCode::ABORTED);
  beat.set_session_id(reply.session_id());
  EXPECT_EQ(target->Call(&v1::ChiefService::Stub::Heartbeat, beat), grpc::StatusCode::OK);
}

// To add a row, add its first two columns, the allowed growth of this process in MiB, and the function that exceeds the
// limit.
struct Probe {
  const char* row;
  const char* limit;
  int64_t growth_mib;
  void (*exceed)(Target* target);
  int64_t version_mib = 2;
};

const Probe kProbes[] = {
    {"a message", "8 MiB, not compressed by gRPC", 100, ExceedMessage},
    {"a request of GetRunSpec, GetCanaryValues, Heartbeat, GetStatus, RequestEnd, WatchRun, or Health.Check", "4 KiB",
     8, ExceedSmallRequest},
    {"a request of OpenSession",
     "8 MiB, 64 MiB once it is parsed: some 80,000 variables; all that wait or are being answered: 32 MiB, each with "
     "16 KiB more than its bytes, four at a time",
     500, ExceedOpenSession},
    {"a request of ReadVariables", "64 KiB", 8, ExceedReadRequest},
    {"a request of AddSummary", "1 MiB", 8, ExceedSummaryRequest},
    {"a request of SetInitialValues", "1 MiB", 8, ExceedInitialValuesRequest},
    {"initial values that a worker brings",
     "as large as the model, of one worker at a time, for a model that fits into memory with them", 64,
     ExceedInitialValues},
    {"reads of variables under way", "64, of one step", 16, ExceedReads},
    {"a name: of a worker, of its host, of its run, in its build, or the reason of RequestEnd", "256 bytes", 128,
     ExceedNames},
    {"the first frame of a Step stream", "4 KiB, no reports, no pieces", 8, ExceedFirstFrame},
    {"calls of GetCanaryValues that wait for the chief's one thread for them", "2,048", 128, ExceedCanaryCalls},
    {"a later frame", "reports for R slots, pieces for all segments of the model (times R with top_k)", 64,
     ExceedFrame},
    {"the reports of a contribution, in whatever parts",
     "for each slot of its token, what the model's update ops have, and a `summary` and `metrics` of 64 KiB together "
     "and what a histogram and a norm of each trainable variable's gradient have: 256 bytes, twice its name, and 16 "
     "bytes for each of 2 · elements + 1 buckets, at most 1,551",
     64, ExceedReports},
    {"staged contributions of a stream, under a policy that is not DETERMINISTIC", "1", 64, ExceedStagedContributions},
    {"calls at once that name no session: unary calls, Step streams before their first frame",
     "64, and those that came within the last second; 2,048 in all", 128, ExceedUnauthenticatedCalls},
    {"calls at once on a connection", "128", 32, ExceedCalls},
    {"calls of a connection that exist, ended ones that are not destroyed yet included",
     "256; 16 while all connections have more than 1024", 32, ExceedLivingCalls},
    {"headers of a request", "8 KiB, counted as in HTTP/2 (32 bytes more than name and value), in one frame", 8,
     ExceedHeaders},
    {"connections",
     "as many as there are descriptors below 4096, and below `ulimit -n` less 256 (or less a third, for the files of a "
     "save)",
     64, ExceedConnections},
    {"what gRPC holds of messages, for all connections",
     "1 GiB, and 32 MiB for each slot, of which there count 64 at least where workers read input streams", 128,
     ExceedGrpcMemory},
    {"versions of the values that workers have not read, or compute with in the chief's memory, in addition to those "
     "that training needs",
     "2, or as many as fit into 16 MiB, for all streams together; under a policy that is not DETERMINISTIC, also one "
     "for each worker whose lease runs",
     350, ExceedVersions, /*version_mib=*/16},
    {"a reply that is not read when its stream has ended", "ten seconds", 32, ExceedUnreadReply},
    {"Step streams of a session", "1", 32, ExceedStreams},
    {"a reply of GetCanaryValues or ReadVariables", "about 1 MiB", 16, ExceedReply},
    {"sessions", "4096", 32, ExceedSessions},
};

// Rows covered by other tests.
constexpr const char* kProbedElsewhere[][3] = {
    {"watchers", "64, and one reply for each that the watcher has not taken",
     "chief_server_test: needs a chief without other calls"},
    {"events that wait for the disk", "4,096, with 64 MiB of memory",
     "event_queue_test, run_summaries_test: need a disk that hangs"},
    {"partial sums of a step, each as large as the model",
     "`cluster.max_partial_sums`: by default log2 R rounded up, or as many as fit into 16 MiB",
     "partial_sums_memory_test: needs a chief of its own"},
    {"staged contributions of all streams, each as large as the model's gradients",
     "`cluster.max_staged_contributions`: by default 3, or as many as fit into 16 MiB",
     "partial_sums_memory_test: needs a chief of its own"},
    {"data of a stream that gRPC reads before the chief asks for it",
     "64 MiB / R, at least 1 MiB, with R counted as 64 at least where workers read input streams; with R up to 4 as "
     "much as the link carries in a round trip",
     "partial_sums_memory_test: needs a chief of its own"},
};

// Returns the first two columns of the table of limits.
std::vector<std::string> Rows() {
  std::ifstream page("docs/wire.md");
  std::vector<std::string> rows;
  bool within = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) within = line == "## Limits";
    if (!within || !absl::StartsWith(line, "| ")) continue;
    const std::vector<std::string> columns = absl::StrSplit(absl::StripPrefix(line, "| "), " | ");
    rows.push_back(absl::StrCat(columns[0], ": ", columns[1]));
  }
  if (!rows.empty()) rows.erase(rows.begin());  // the header
  return rows;
}

TEST(LimitsTableTest, EveryRowHasAProbe) {
  std::vector<std::string> probes;
  for (const Probe& probe : kProbes) probes.push_back(absl::StrCat(probe.row, ": ", probe.limit));
  for (const auto& elsewhere : kProbedElsewhere) probes.push_back(absl::StrCat(elsewhere[0], ": ", elsewhere[1]));
  EXPECT_THAT(Rows(), testing::UnorderedElementsAreArray(probes));
}

class LimitsTest : public testing::TestWithParam<Probe> {
 protected:
  static void SetUpTestSuite() {
    rlimit files = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = std::min(files.rlim_cur, kDescriptors);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  }
};

TEST_P(LimitsTest, Holds) {
  Target target(GetParam().version_mib << 20);
  ASSERT_NO_FATAL_FAILURE(target.stranger()->Open());
  target.run()->Train(2);
  const MemoryGrowth memory;
  GetParam().exceed(&target);
  EXPECT_LT(memory.peak() >> 20, GetParam().growth_mib);
  target.run()->Train(2);
}

INSTANTIATE_TEST_SUITE_P(Rows, LimitsTest, testing::ValuesIn(kProbes), [](const testing::TestParamInfo<Probe>& info) {
  std::string name;
  for (const char* c = info.param.row; *c != '\0' && name.size() < 40; ++c) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(*c))) name += *c;
  }
  return name;
});

}  // namespace
}  // namespace lockstep
