// Tests clients that do not speak the protocol: random bytes, connections and calls. The run must continue unchanged.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/fault_injected_run.h"
#include "lockstep/tests/testing/loopback_connection.h"
#include "lockstep/tests/testing/proto_only_worker.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kStep[] = "/lockstep.v1.ChiefService/Step";

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::shared_ptr<grpc::Channel> NewConnection(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// A call that sends raw messages.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) : stub_(channel) {
    context_.set_wait_for_ready(true);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    Next();
  }
  ~RawCall() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  void Write(const grpc::ByteBuffer& message) {
    call_->Write(message, this);
    Next();
  }
  // Returns the status with which the server ends the call.
  grpc::Status Finish(bool writes_done = false) {
    if (writes_done) {
      call_->WritesDone(this);
      Next();
    }
    grpc::Status status;
    call_->Finish(&status, this);
    Next();
    return status;
  }

 private:
  void Next() {
    void* tag;
    bool ok;
    queue_.Next(&tag, &ok);
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

grpc::Status SendRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     const std::string& bytes) {
  RawCall call(channel, method);
  call.Write(Bytes(bytes));
  return call.Finish(method != kStep);
}

// A TCP connection to "127.0.0.1:port".
class Socket {
 public:
  explicit Socket(const std::string& address) : fd_(ConnectToLoopback(address)) {}
  Socket(const Socket&) = delete;
  ~Socket() { close(fd_); }
  void Send(const std::string& bytes) {
    // The server may hang up before everything is sent.
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }
  // Reads until the server hangs up.
  void ReadToTheEnd() {
    char buffer[4096];
    while (recv(fd_, buffer, sizeof(buffer), 0) > 0) {
    }
  }

 private:
  const int fd_;
};

std::string RandomBytes(std::mt19937* random, size_t n) {
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// Raises the limit on open files as far as possible. Returns how many connections it allows, with two descriptors each
// in this process, but at most 1000.
int ManyConnections() {
  rlimit files;
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  return static_cast<int>(std::min<rlim_t>(1000, (files.rlim_cur - 200) / 2));
}

TEST(HostileBytesTest, MessagesThatAreNoneAreNamed) {
  FaultInjectedRun run;
  const auto channel = NewConnection(run.address());
  const std::vector<std::pair<std::string, std::string>> steps = {
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11), "malformed"},  // an endless number
      {std::string("\x00", 1), "a malformed tag"},
      {std::string("\x08", 1), "field 1 is malformed"},                      // truncated
      {std::string("\x3a\xff\xff\xff\xff\x0f", 6), "field 7 is malformed"},  // a piece of 4 GiB
      {std::string("\x32\xff\xff\xff\xff\x0f", 6), "field 6 is malformed"},  // a report of 4 GiB
      {std::string("\x32\x02\x08", 3), "field 6 is malformed"},
      {std::string("\x5a\x01\x08", 3), "the bytes are no StepRequest"},
      {std::string("\x0b", 1), "field 1 is malformed"},  // a group
  };
  for (const auto& step : steps) {
    const grpc::Status status = SendRaw(channel, kStep, step.first);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(step.second));
  }
  for (const char* method : {"GetRunSpec", "OpenSession", "Heartbeat", "GetStatus", "ReadVariables"}) {
    const grpc::Status status = SendRaw(channel, absl::StrCat("/lockstep.v1.ChiefService/", method), "\xff\xff\xff");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("nable to parse request")) << method;
  }
  EXPECT_EQ(SendRaw(channel, "/lockstep.v1.ChiefService/Stop", "").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(SendRaw(channel, "Step", "").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, RandomMessagesAreAnswered) {
  FaultInjectedRun run;
  const auto channel = NewConnection(run.address());
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = RandomBytes(&random, random() % 300);
    // Even if the bytes happen to form a valid message, they do not name an existing session.
    EXPECT_THAT(
        SendRaw(channel, kStep, bytes).error_code(),
        AnyOf(grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::ABORTED));
    EXPECT_THAT(SendRaw(channel, "/lockstep.v1.ChiefService/OpenSession", bytes).error_code(),
                AnyOf(grpc::StatusCode::INTERNAL, grpc::StatusCode::FAILED_PRECONDITION));
    EXPECT_THAT(SendRaw(channel, "/lockstep.v1.ChiefService/Heartbeat", bytes).error_code(),
                AnyOf(grpc::StatusCode::INTERNAL, grpc::StatusCode::ABORTED));
  }
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, AMessageOverTheLimitIsRefused) {
  FaultInjectedRun run;
  // Nine parts of 1 MiB exceed the limit of 8 MiB.
  const grpc::Slice part(std::string(1 << 20, 'x'));
  const std::vector<grpc::Slice> parts(9, part);
  RawCall call(NewConnection(run.address()), "/lockstep.v1.ChiefService/OpenSession");
  call.Write(grpc::ByteBuffer(parts.data(), parts.size()));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("8388608"));
  run.ExpectSameWeights();
}

// Returns a message that consists of empty elements, two bytes each.
std::string EmptyElements(char tag, size_t bytes) {
  std::string message;
  for (size_t i = 0; i < bytes / 2; ++i) message.append({tag, '\0'});
  return message;
}

// Returns the peak memory of this process since the last call to ForgetPeak, in bytes.
int64_t Peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int64_t kilobytes;
    if (std::sscanf(line.c_str(), "VmHWM: %" SCNd64 " kB", &kilobytes) == 1) return kilobytes << 10;
  }
  return -1;
}
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST(HostileBytesTest, AMessageTakesAFewTimesItsBytes) {
  FaultInjectedRun run;
  ProtoOnlyWorker stranger(run.address(), "session", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  const auto channel = NewConnection(run.address());
  constexpr size_t kBytes = (8 << 20) - 1000;
  const std::string session = stranger.AskForToken().SerializeAsString();
  const std::vector<std::pair<std::string, std::string>> messages = {
      {kStep, EmptyElements('\x32', kBytes)},  // reports
      {kStep, EmptyElements('\x3a', kBytes)},  // pieces
      {kStep, EmptyElements('\x58', kBytes)},  // a message encoded as a number
      {kStep, session + EmptyElements('\x58', kBytes)},
      {kStep, session + EmptyElements('\x32', kBytes)},                          // reports in a session
      {"/lockstep.v1.ChiefService/OpenSession", EmptyElements('\x7a', kBytes)},  // unknown fields
      {"/lockstep.v1.ChiefService/GetStatus", EmptyElements('\x7a', kBytes)},
      {"/lockstep.v1.ChiefService/ReadVariables", EmptyElements('\x0a', kBytes)},  // names
      {"/grpc.health.v1.Health/Check", EmptyElements('\x7a', kBytes)},
  };
  for (const auto& message : messages) {
    ForgetPeak();
    const int64_t before = Peak();
    EXPECT_EQ(SendRaw(channel, message.first, message.second).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
        << message.first;
    // Several copies of the message are in transit in this process.
    EXPECT_LT(Peak() - before, 100 << 20) << message.first;
  }
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, CompressedMessagesAreRefused) {
  FaultInjectedRun run;
  const auto stub = v1::ChiefService::NewStub(NewConnection(run.address()));
  v1::OpenSessionRequest bomb;
  bomb.set_worker(std::string(100 << 20, 'x'));
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::OpenSessionReply reply;
    const grpc::Status status = stub->OpenSession(&context, bomb, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, UnfinishedMessagesGiveWayToOthers) {
  FaultInjectedRun run;
  // The bytes that begin an HTTP/2 connection. Calls of Step follow, each with one byte of an 8 MiB message.
  const std::string begin("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 33);
  std::string headers;
  const auto add = [&headers](const std::string& name, const std::string& value) {
    headers += std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", kStep);
  add(":authority", "chief");
  add("te", "trailers");
  add("content-type", "application/grpc");
  const auto frame = [](char type, char flags, int stream, const std::string& payload) {
    std::string bytes = {0,
                         static_cast<char>(payload.size() >> 8),
                         static_cast<char>(payload.size()),
                         type,
                         flags,
                         0,
                         0,
                         0,
                         static_cast<char>(stream)};
    return bytes + payload;
  };
  std::vector<std::unique_ptr<Socket>> sockets;
  for (int i = 0; i < 10; ++i) {
    sockets.push_back(std::make_unique<Socket>(run.address()));
    sockets.back()->Send(begin);
    for (int stream = 1; stream < 200; stream += 2) {
      sockets.back()->Send(frame(1, 4, stream, headers) + frame(0, 0, stream, std::string("\0\0\x80\0\0x", 6)));
    }
  }
  // This must happen while the good worker is stuck. Otherwise the run may be over before this worker gets a token.
  ProtoOnlyWorker stranger(run.address(), "proto_only_worker", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  grpc::ClientContext context;
  const auto stream = stranger.NewStream(&context);
  ASSERT_TRUE(stream->Write(stranger.AskForToken()));
  v1::Token token;
  EXPECT_TRUE(stranger.ReadToken(stream.get(), &token));
  context.TryCancel();
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, ClosesConnectionsOfOtherProtocols) {
  ChiefServer::Options server;
  server.silence_limit = absl::Seconds(2);
  FaultInjectedRun run(server);
  std::mt19937 random(2);
  std::vector<std::string> greetings = {
      "GET / HTTP/1.1\r\nHost: chief\r\n\r\n",
      // The beginning of a TLS client hello.
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + RandomBytes(&random, 506),
      "SSH-2.0-OpenSSH_9.2p1\r\n",
      std::string(1 << 16, '\0'),
      // HTTP/2's preface, followed by the header of a 16 MiB frame without its contents, a frame of unknown type, or a
      // call on stream 0.
      std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x01", 33),
      std::string(
          "PRI * "
          "HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00",
          43),
  };
  for (int i = 0; i < 20; ++i) greetings.push_back(RandomBytes(&random, 1 + random() % 5000));
  for (const std::string& greeting : greetings) {
    Socket socket(run.address());
    socket.Send(greeting);
    socket.ReadToTheEnd();
  }
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, SilentConnectionsBlockNoOthers) {
  const int many = ManyConnections();
  FaultInjectedRun run;
  std::vector<std::unique_ptr<Socket>> sockets;
  for (int i = 0; i < many; ++i) sockets.push_back(std::make_unique<Socket>(run.address()));
  std::vector<std::unique_ptr<RawCall>> streams;
  for (int i = 0; i < 10; ++i) {
    const auto channel = NewConnection(run.address());
    for (int k = 0; k < 100; ++k) streams.push_back(std::make_unique<RawCall>(channel, kStep));
  }
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, SilentConnectionsEnd) {
  const int many = ManyConnections();
  ChiefServer::Options server;
  server.silence_limit = absl::Seconds(1);
  FaultInjectedRun run(server);
  std::vector<std::unique_ptr<Socket>> sockets;
  for (int i = 0; i < many; ++i) sockets.push_back(std::make_unique<Socket>(run.address()));
  for (const auto& socket : sockets) socket->ReadToTheEnd();
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, SilentStreamsEnd) {
  ChiefServer::Options server;
  // A shorter limit would not work, because the connection itself must stay open even on a busy machine.
  server.silence_limit = absl::Seconds(8);
  FaultInjectedRun run(server);
  const auto channel = NewConnection(run.address());
  std::vector<std::unique_ptr<RawCall>> streams;
  for (int k = 0; k < 50; ++k) streams.push_back(std::make_unique<RawCall>(channel, kStep));
  for (const auto& stream : streams) {
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(status.error_message(), "the stream's first frame did not come for 8s");
  }
  run.ExpectSameWeights();
}

TEST(HostileBytesTest, AFloodOfCallsBlocksNoOthers) {
  FaultInjectedRun run({}, /*held=*/false);
  ProtoOnlyWorker stranger(run.address(), "proto_only_worker", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  std::vector<std::thread> flooders;
  for (uint64_t flooder = 0; flooder < 4; ++flooder) {
    flooders.emplace_back([&, flooder] {
      const auto stub = v1::ChiefService::NewStub(NewConnection(run.address()));
      v1::OpenSessionRequest open = stranger.open_request();
      // Opens more sessions than the chief keeps.
      for (uint64_t i = 0; i < 1100; ++i) {
        grpc::ClientContext open_context, run_context;
        open.set_incarnation(flooder << 32 | i);
        v1::OpenSessionReply opened;
        EXPECT_TRUE(stub->OpenSession(&open_context, open, &opened).ok());
        v1::GetRunSpecReply reply;
        EXPECT_TRUE(stub->GetRunSpec(&run_context, v1::GetRunSpecRequest(), &reply).ok());
      }
    });
  }
  for (std::thread& flooder : flooders) flooder.join();
  run.ExpectSameWeights();
}

}  // namespace
}  // namespace lockstep
