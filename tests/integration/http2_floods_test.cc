// Tests peers without a session that send raw HTTP/2 frames to make gRPC hold memory. docs/security.md lists the
// advisories.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/fault_injected_run.h"
#include "lockstep/tests/testing/http2_peer.h"
#include "lockstep/tests/testing/process_memory.h"

namespace lockstep {
namespace {

// The maximum memory that a hundred connections may cost the chief.
constexpr int64_t kMostBytes = 16 << 20;
// The memory limit for connections that begin as many calls as possible: 1024 calls in total, 16 on each connection.
// Each call takes 6 to 12 KiB.
constexpr int64_t kMostBytesOfCalls = 64 << 20;

constexpr uint8_t kPriority = 2, kSettings = 4, kPing = 6, kGoAway = 7, kContinuation = 9;
constexpr uint8_t kNone = 0, kAck = 1;

std::string Encode(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return Http2Peer::Encode(type, flags, stream, payload);
}
std::string Headers(uint32_t stream, const std::string& headers) {
  return Encode(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream, headers);
}

std::string Header(const std::string& name, const std::string& value, bool indexed = false) {
  return Http2Peer::Header(name, value, indexed);
}

std::string RequestHeaders(const std::string& te = "trailers", const std::string& scheme = "http") {
  return Header(":method", "POST") + Header(":scheme", scheme) + Header(":path", "/grpc.health.v1.Health/Check") +
         Header(":authority", "chief") + Header("te", te) + Header("content-type", "application/grpc");
}

// Reads until the server closes the connection.
void ReadToTheEnd(Http2Peer* peer) {
  while (peer->Read().has_value()) {
  }
}

// Reads until the server has answered the ping or closed the connection.
void ReadToTheAnswer(Http2Peer* peer, const std::string& ping) {
  absl::optional<Http2Peer::Frame> frame = peer->Read();
  while (frame && (frame->type != kPing || frame->flags != kAck || frame->payload != ping)) frame = peer->Read();
}

// Sends `flood` on a hundred connections, which stay open on this side. Every second one acknowledges the server's
// settings. Expects that the server closes each connection, that its memory stays bounded, and that the good worker
// trains the same weights and loses no step.
void ExpectRefused(const std::string& flood, int64_t most_bytes = kMostBytes) {
  FaultInjectedRun run({}, /*held=*/true, {}, FaultInjectedRun::kLongLeaseSeconds);
  const MemoryGrowth growth;
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (int i = 0; i < 100; ++i) {
    peers.push_back(std::make_unique<Http2Peer>(run.address()));
    if (i % 2 == 0) peers.back()->Send(Encode(kSettings, kAck, 0, ""));
    peers.back()->Send(flood);
    if (i == 50) run.Release();
  }
  for (const auto& peer : peers) ReadToTheEnd(peer.get());
  EXPECT_LT(growth.peak(), most_bytes);
  run.ExpectUndisturbed();
}

// Returns headers that begin in one frame and continue in `frames` more frames, each of which contains `more`, without
// ever ending.
std::string Endless(const std::string& beginning, const std::string& more, int frames) {
  std::string flood = Encode(Http2Peer::kHeaders, kNone, 1, beginning);
  for (int i = 0; i < frames; ++i) flood += Encode(kContinuation, kNone, 1, more);
  return flood;
}

// CVE-2023-33953.
TEST(Http2FloodsTest, EndlessHeadersEndTheConnection) {
  ExpectRefused(Endless(RequestHeaders(), Header("name", std::string(8000, 'a')), 256));
}

// The header claims to be 4 GiB long. gRPC keeps the bytes that have arrived.
TEST(Http2FloodsTest, AnEndlessHeaderEndsTheConnection) {
  const std::string beginning("\0\4name\x7f\x80\x80\x80\x80\x0f", 12);
  ExpectRefused(Endless(RequestHeaders() + beginning, std::string(16384, 'a'), 64));
}

// An integer may be padded with any number of zero bytes.
TEST(Http2FloodsTest, AnEndlessNumberEndsTheConnection) {
  ExpectRefused(Endless(RequestHeaders() + std::string("\0\x7f", 2), std::string(16384, '\x80'), 64));
}

// Sends four thousand bytes, each of which refers to a 4 KB header.
TEST(Http2FloodsTest, RepeatedHeadersEndTheConnection) {
  const std::string header = Header(std::string(3900, 'k'), "v", /*indexed=*/true);
  ExpectRefused(Headers(1, RequestHeaders() + header + std::string(4000, '\xbe')));
}

TEST(Http2FloodsTest, TooManyCallsEndTheConnection) {
  std::string flood;
  for (uint32_t i = 0; i < 10000; ++i) flood += Headers(2 * i + 1, RequestHeaders());
  ExpectRefused(flood, kMostBytesOfCalls);
}

// CVE-2023-44487.
TEST(Http2FloodsTest, RapidResetsEndTheConnection) {
  const std::string cancelled("\0\0\0\x08", 4);
  std::string flood;
  for (uint32_t i = 0; i < 10000; ++i) {
    flood += Headers(2 * i + 1, RequestHeaders()) + Encode(Http2Peer::kResetStream, kNone, 2 * i + 1, cancelled);
  }
  ExpectRefused(flood, kMostBytesOfCalls);
}

// CVE-2025-8671: the frame after the headers of each call makes the server reset the call.
TEST(Http2FloodsTest, ProvokedResetsEndTheConnection) {
  const auto calls_with = [](uint8_t type, uint8_t flags, const std::string& payload) {
    std::string flood;
    for (uint32_t i = 0; i < 10000; ++i) {
      flood += Headers(2 * i + 1, RequestHeaders()) + Encode(type, flags, 2 * i + 1, payload);
    }
    return flood;
  };
  const uint8_t unknown_flag = 64;
  const std::string compressed_message("\1\0\0\0\0", 5), no_message("\2\0\0\0\0", 5);
  ExpectRefused(calls_with(Http2Peer::kWindowUpdate, kNone, std::string(4, '\0')), kMostBytesOfCalls);
  ExpectRefused(calls_with(Http2Peer::kData, unknown_flag, ""), kMostBytesOfCalls);
  ExpectRefused(calls_with(Http2Peer::kData, kNone, no_message), kMostBytesOfCalls);
  ExpectRefused(calls_with(Http2Peer::kData, kNone, compressed_message), kMostBytesOfCalls);
}

TEST(Http2FloodsTest, PingsEndTheConnection) {
  std::string flood;
  for (int i = 0; i < 50000; ++i) flood += Encode(kPing, kNone, 0, "12345678");
  ExpectRefused(flood);
}

// Frames that gRPC ignores or answers briefly, after the headers of a call. The peers read nothing until all is sent.
TEST(Http2FloodsTest, OtherFramesTakeLittleMemory) {
  constexpr uint8_t kUnknown = 77;
  const std::string frames[] = {Encode(kSettings, kNone, 0, ""),
                                Encode(Http2Peer::kResetStream, kNone, 1, std::string(4, '\0')),
                                Encode(Http2Peer::kWindowUpdate, kNone, 0, std::string("\0\0\0\1", 4)),
                                Encode(kPriority, kNone, 3, std::string(5, '\0')),
                                Encode(kGoAway, kNone, 0, std::string(8, '\0')),
                                Encode(Http2Peer::kData, kNone, 1, ""),
                                Encode(kUnknown, kNone, 1, "12345678")};
  FaultInjectedRun run({}, /*held=*/true, {}, FaultInjectedRun::kLongLeaseSeconds);
  const MemoryGrowth growth;
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (const std::string& frame : frames) {
    std::string flood = Headers(1, RequestHeaders());
    while (flood.size() < 1 << 20) flood += frame;
    flood += Encode(kPing, kNone, 0, "the last");
    for (int i = 0; i < 10; ++i) {
      peers.push_back(std::make_unique<Http2Peer>(run.address()));
      peers.back()->Send(flood);
    }
  }
  for (const auto& peer : peers) ReadToTheAnswer(peer.get(), "the last");
  EXPECT_LT(growth.peak(), kMostBytes);
  run.ExpectUndisturbed();
}

// CVE-2023-1428 and CVE-2023-32731: a header with a value that gRPC refuses, followed by too many bytes.
TEST(Http2FloodsTest, InvalidHeadersEndTheConnection) {
  const std::string more = Header("a", std::string(4200, 'a')) + Header("b", std::string(4200, 'b'));
  ExpectRefused(Headers(1, RequestHeaders("x") + more));
  ExpectRefused(Headers(1, RequestHeaders("trailers", "x") + more));
  ExpectRefused(Headers(1, Header("grpclb_client_stats", "x") + RequestHeaders() + more));
}

// CVE-2023-32732 and CVE-2024-7246. The peer loses only its own connection, which no other peer shares.
TEST(Http2FloodsTest, AnInvalidBinaryHeaderEndsNothingElse) {
  FaultInjectedRun run({}, /*held=*/true, {}, FaultInjectedRun::kLongLeaseSeconds);
  Http2Peer peer(run.address());
  peer.Send(Headers(1, RequestHeaders() + Header("x-bin", "*")));
  peer.Send(Encode(Http2Peer::kHeaders, kNone, 3, "\x80"));
  ReadToTheEnd(&peer);
  run.ExpectUndisturbed();
}

TEST(Http2FloodsTest, HeadersUpToTheLimitAreAccepted) {
  FaultInjectedRun run({}, /*held=*/true, {}, FaultInjectedRun::kLongLeaseSeconds);
  Http2Peer peer(run.address());
  const std::string headers = RequestHeaders() + Header("name", std::string(7700, 'a'));
  peer.Send(Headers(1, headers));
  peer.SendMessage(1, "", /*last=*/true);
  absl::optional<Http2Peer::Frame> frame = peer.Read();
  while (frame.has_value() && (frame->stream != 1 || (frame->flags & Http2Peer::kEndStream) == 0)) frame = peer.Read();
  ASSERT_TRUE(frame.has_value());
  EXPECT_NE(frame->payload.find(std::string("grpc-status\x01") + "0"), std::string::npos);
  peer.Send(Headers(3, headers + Header("more", std::string(400, 'a'))));
  ReadToTheEnd(&peer);
  run.ExpectUndisturbed();
}

}  // namespace
}  // namespace lockstep
