#ifndef LOCKSTEP_TESTS_TESTING_TLS_PEER_H_
#define LOCKSTEP_TESTS_TESTING_TLS_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

// OpenSSL's types.
struct ssl_ctx_st;
struct ssl_st;

namespace lockstep {

// A peer that speaks just enough HTTP/2 over TLS to begin calls, and does not check certificates. Not thread-safe.
class TlsPeer {
 public:
  // Connects to "127.0.0.1:port" and sends the preface. Presents the certificate of `kit`, or none if `kit` is empty.
  TlsPeer(const std::string& address, const std::string& kit);
  ~TlsPeer();
  TlsPeer(const TlsPeer&) = delete;

  // Sends bytes. Stops if the server hangs up.
  void Send(const std::string& bytes);
  // Begins a call whose request ends without a message.
  void Begin(uint32_t stream, const std::string& method);
  // Begins request headers that continue in `frames` frames, each with a header value of `bytes` bytes, but never end.
  void SendEndlessHeaders(int frames, int bytes);
  // Blocks until the server has sent `text` or has hung up. Returns true if it has sent `text`.
  bool ReadUntil(const std::string& text);
  // Blocks until the server hangs up.
  void ReadToTheEnd() { ReadUntil(""); }

 private:
  int fd_ = -1;
  std::shared_ptr<ssl_ctx_st> context_;
  std::shared_ptr<ssl_st> tls_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TLS_PEER_H_
