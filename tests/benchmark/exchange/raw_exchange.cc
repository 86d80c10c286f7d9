#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

bool ReadAll(int fd, char* out, size_t n) {
  while (n > 0) {
    const ssize_t got = recv(fd, out, n, MSG_WAITALL);
    if (got <= 0) return false;
    out += got;
    n -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int fd, const char* data, size_t n) {
  while (n > 0) {
    const ssize_t put = send(fd, data, n, MSG_NOSIGNAL);
    if (put <= 0) return false;
    data += put;
    n -= static_cast<size_t>(put);
  }
  return true;
}

// Creates a socket for the address in `text`, and stores the parsed address in `address`.
absl::StatusOr<int> NewSocket(const std::string& text, sockaddr_storage* address, socklen_t* size) {
  std::memset(address, 0, sizeof(*address));
  if (absl::StartsWith(text, "unix:")) {
    auto* const place = reinterpret_cast<sockaddr_un*>(address);
    place->sun_family = AF_UNIX;
    std::strncpy(place->sun_path, text.c_str() + 5, sizeof(place->sun_path) - 1);
    *size = sizeof(*place);
  } else {
    int port = 0;
    if (!absl::SimpleAtoi(text.substr(text.rfind(':') + 1), &port)) return absl::InvalidArgumentError(text);
    auto* const place = reinterpret_cast<sockaddr_in*>(address);
    place->sin_family = AF_INET;
    place->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    place->sin_port = htons(static_cast<uint16_t>(port));
    *size = sizeof(*place);
  }
  const int fd = socket(address->ss_family, SOCK_STREAM, 0);
  if (fd < 0) return absl::InternalError("no socket");
  return fd;
}

void SetNoDelay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

class RawServer : public ExchangeServer {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeServer>> Start(const ExchangeSpec& spec) {
    auto server = std::make_unique<RawServer>();
    RETURN_IF_ERROR(server->Listen(spec));
    return std::unique_ptr<ExchangeServer>(std::move(server));
  }

  std::string address() const override { return address_; }

 private:
  absl::Status Listen(const ExchangeSpec& spec) {
    address_ = spec.unix_socket ? absl::StrCat("unix:", spec.directory, "/raw") : "127.0.0.1:0";
    sockaddr_storage address;
    socklen_t size = 0;
    ASSIGN_OR_RETURN(listener_, NewSocket(address_, &address, &size));
    if (spec.unix_socket) unlink(address_.c_str() + 5);  // left by an earlier run
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, spec.workers) != 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address_));
    }
    if (!spec.unix_socket) {
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
      address_ = absl::StrCat("127.0.0.1:", ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port));
    }
    bytes_ = BytesOf(spec.model);
    workers_ = spec.workers;
    values_ = AlignedBuffer(bytes_);
    std::memset(values_.data(), 0, bytes_);
    arrived_ = std::vector<std::atomic<int>>((bytes_ + kPieceBytes - 1) / kPieceBytes);
    for (int i = 0; i < workers_; ++i) {
      gradients_.emplace_back(bytes_);
      std::memset(gradients_.back().data(), 0, bytes_);
    }
    for (int i = 0; i < workers_; ++i) std::thread([this, i] { Serve(i); }).detach();
    return absl::OkStatus();
  }

  void Serve(int index) {
    const int fd = accept(listener_, nullptr, nullptr);
    SetNoDelay(fd);
    while (true) {
      for (size_t at = 0; at < bytes_; at += kPieceBytes) {
        const size_t n = std::min(kPieceBytes, bytes_ - at);
        if (!ReadAll(fd, gradients_[index].data() + at, n)) return;
        // The thread that receives the last gradient of a piece sums the piece.
        if (arrived_[at / kPieceBytes].fetch_add(1) + 1 == workers_) {
          arrived_[at / kPieceBytes] = 0;
          Sum(at, n);
        }
      }
      AwaitOthers();
      if (!WriteAll(fd, values_.data(), bytes_)) return;
    }
  }

  void Sum(size_t at, size_t bytes) {
    const size_t n = bytes / sizeof(float);
    float* const sum = reinterpret_cast<float*>(gradients_[0].data() + at);
    for (int worker = 1; worker < workers_; ++worker) {
      const float* const gradient = reinterpret_cast<const float*>(gradients_[worker].data() + at);
      for (size_t i = 0; i < n; ++i) sum[i] += gradient[i];
    }
    float* const values = reinterpret_cast<float*>(values_.data() + at);
    const float divisor = static_cast<float>(workers_);
    for (size_t i = 0; i < n; ++i) values[i] -= sum[i] / divisor * 0.01f;
  }

  // Blocks until every worker's gradient has arrived.
  void AwaitOthers() {
    if (workers_ == 1) return;
    MutexLock lock(&mutex_);
    const int64_t round = round_;
    if (++waiting_ == workers_) {
      waiting_ = 0;
      ++round_;
      all_here_.SignalAll();
    }
    while (round_ == round) all_here_.Wait(&mutex_);
  }

  int listener_ = -1;
  std::string address_;
  size_t bytes_ = 0;
  int workers_ = 0;
  AlignedBuffer values_;
  std::vector<AlignedBuffer> gradients_;
  std::vector<std::atomic<int>> arrived_;
  Mutex mutex_;
  CondVar all_here_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
};

class RawWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Connect(const ExchangeSpec& spec, const std::string& address,
                                                                 int index) {
    auto worker = std::make_unique<RawWorker>();
    sockaddr_storage place;
    socklen_t size = 0;
    ASSIGN_OR_RETURN(worker->fd_, NewSocket(address, &place, &size));
    if (connect(worker->fd_, reinterpret_cast<sockaddr*>(&place), size) != 0) return absl::UnavailableError(address);
    SetNoDelay(worker->fd_);
    worker->gradient_ = AlignedBuffer(BytesOf(spec.model));
    worker->values_ = AlignedBuffer(BytesOf(spec.model));
    std::memset(worker->gradient_.data(), 0, worker->gradient_.size());
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      if (!WriteAll(fd_, gradient_.data(), gradient_.size()) || !ReadAll(fd_, values_.data(), values_.size())) {
        return absl::UnavailableError("the raw connection broke");
      }
    }
    return absl::OkStatus();
  }

 private:
  int fd_ = -1;
  AlignedBuffer gradient_, values_;
};

}  // namespace

Exchange RawExchange() { return {RawServer::Start, RawWorker::Connect}; }

}  // namespace benchmark
}  // namespace lockstep
