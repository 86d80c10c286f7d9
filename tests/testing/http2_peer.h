#ifndef LOCKSTEP_TESTS_TESTING_HTTP2_PEER_H_
#define LOCKSTEP_TESTS_TESTING_HTTP2_PEER_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace lockstep {

// A peer with just enough HTTP/2 over a socket to make gRPC calls. It never extends the server's flow control window,
// does not acknowledge settings, and answers a ping only when Read reads it. Must be used by only one thread.
class Http2Peer {
 public:
  enum Type : uint8_t { kData = 0, kHeaders = 1, kResetStream = 3, kSettings = 4, kPing = 6, kWindowUpdate = 8 };
  static constexpr uint8_t kEndStream = 1, kEndHeaders = 4;
  struct Frame {
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
    std::string payload;
  };

  // Connects to "127.0.0.1:port" and sends the preface.
  explicit Http2Peer(const std::string& address);
  // Takes over a client's connection and reads its preface.
  explicit Http2Peer(int fd);
  Http2Peer(const Http2Peer&) = delete;
  ~Http2Peer();

  // Sends bytes. Stops if the server hangs up.
  void Send(const std::string& bytes);
  // Begins a call to `method`, for example "/lockstep.v1.ChiefService/Step". Stream numbers must be odd and ascending.
  // `more` is the value of an additional header.
  void Begin(uint32_t stream, const std::string& method, const std::string& more = "");
  // Sends a message in a call. If `last` is true, also ends the request.
  void SendMessage(uint32_t stream, const std::string& message, bool last = false);
  // Sends the first `part` bytes of a message of `size` bytes, regardless of the server's flow control window, which is
  // 64 KiB.
  void SendPart(uint32_t stream, uint32_t size, uint32_t part);
  // Blocks until the server hangs up.
  void ReadToTheEnd();
  // Blocks until a frame arrives. Returns nullopt if the server has hung up.
  absl::optional<Frame> Read();

  // Returns a literal header in HPACK. If `indexed`, the header is added to the connection's dynamic table.
  static std::string Header(const std::string& name, const std::string& value, bool indexed = false);
  static std::string Encode(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload);

 private:
  bool ReadBytes(size_t count, std::string* bytes);

  const int fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_HTTP2_PEER_H_
