#include "lockstep/tests/testing/http2_peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/loopback_connection.h"

namespace lockstep {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// Returns `text` as an HPACK string: its length as an integer with a 7-bit prefix, followed by the text.
std::string HpackString(const std::string& text) {
  if (text.size() < 127) return static_cast<char>(text.size()) + text;
  std::string length = "\x7f";
  size_t rest = text.size() - 127;
  for (; rest >= 128; rest >>= 7) length += static_cast<char>(rest % 128 + 128);
  return length + static_cast<char>(rest) + text;
}

}  // namespace

Http2Peer::Http2Peer(const std::string& address) : fd_(ConnectToLoopback(address)) {
  Send(std::string(kPreface));
  Send(Encode(kSettings, 0, 0, ""));
}

Http2Peer::Http2Peer(int fd) : fd_(fd) {
  std::string preface;
  ReadBytes(kPreface.size(), &preface);
}

Http2Peer::~Http2Peer() { close(fd_); }

void Http2Peer::Send(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

void Http2Peer::Begin(uint32_t stream, const std::string& method, const std::string& more) {
  std::string headers;
  const auto add = [&headers](const std::string& name, const std::string& value) { headers += Header(name, value); };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", method);
  add(":authority", "chief");
  add("te", "trailers");
  add("content-type", "application/grpc");
  if (!more.empty()) add("more", more);
  Send(Encode(kHeaders, kEndHeaders, stream, headers));
}

std::string Http2Peer::Header(const std::string& name, const std::string& value, bool indexed) {
  return (indexed ? '\x40' : '\0') + HpackString(name) + HpackString(value);
}

void Http2Peer::SendMessage(uint32_t stream, const std::string& message, bool last) {
  const std::string prefixed = std::string(1, '\0') + BigEndian(static_cast<uint32_t>(message.size())) + message;
  Send(Encode(kData, last ? kEndStream : 0, stream, prefixed));
}

void Http2Peer::SendPart(uint32_t stream, uint32_t size, uint32_t part) {
  constexpr size_t kMaxFrame = 16384;
  const std::string bytes = std::string(1, '\0') + BigEndian(size) + std::string(part, 'x');
  for (size_t at = 0; at < bytes.size(); at += kMaxFrame) {
    Send(Encode(kData, 0, stream, bytes.substr(at, kMaxFrame)));
  }
}

void Http2Peer::ReadToTheEnd() {
  while (Read()) {
  }
}

absl::optional<Http2Peer::Frame> Http2Peer::Read() {
  std::string header;
  if (!ReadBytes(9, &header)) return absl::nullopt;
  const auto byte = [&header](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(header[i])); };
  Frame frame;
  frame.type = static_cast<uint8_t>(byte(3));
  frame.flags = static_cast<uint8_t>(byte(4));
  frame.stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
  if (!ReadBytes(byte(0) << 16 | byte(1) << 8 | byte(2), &frame.payload)) return absl::nullopt;
  if (frame.type == kPing && frame.flags == 0) Send(Encode(kPing, /*ACK*/ 1, 0, frame.payload));
  return frame;
}

std::string Http2Peer::Encode(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return BigEndian(static_cast<uint32_t>(payload.size())).substr(1) + static_cast<char>(type) +
         static_cast<char>(flags) + BigEndian(stream) + payload;
}

bool Http2Peer::ReadBytes(size_t count, std::string* bytes) {
  bytes->resize(count);
  for (size_t at = 0; at < count;) {
    const ssize_t got = recv(fd_, &(*bytes)[at], count - at, 0);
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace lockstep
