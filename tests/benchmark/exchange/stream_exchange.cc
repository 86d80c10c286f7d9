#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/plain_channel.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

size_t NumPieces(size_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

// Returns a message that refers to a piece of `memory`, which must outlive it.
grpc::ByteBuffer Piece(const AlignedBuffer& memory, size_t piece) {
  const size_t at = piece * kPieceBytes;
  const grpc::Slice slice(memory.data() + at, std::min(kPieceBytes, memory.size() - at), grpc::Slice::STATIC_SLICE);
  return grpc::ByteBuffer(&slice, 1);
}

// Calls each(data, n) for each slice of a message.
template <typename Each>
void ForEachSlice(const grpc::ByteBuffer& message, Each each) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return;
  for (const grpc::Slice& slice : slices) each(slice.begin(), slice.size());
}

void CopyTo(float* to, const grpc::ByteBuffer& message) {
  char* out = reinterpret_cast<char*>(to);
  ForEachSlice(message, [&](const uint8_t* data, size_t n) {
    std::memcpy(out, data, n);
    out += n;
  });
}

// Adds the floats in a message to `to`. The message may be split into slices at any byte.
void AddTo(float* to, const grpc::ByteBuffer& message) {
  char cut[sizeof(float)];
  size_t held = 0;
  const auto add = [&to](const void* bytes) {
    float x;
    std::memcpy(&x, bytes, sizeof(x));
    *to++ += x;
  };
  ForEachSlice(message, [&](const uint8_t* data, size_t n) {
    for (; held > 0 && held < sizeof(float) && n > 0; --n) cut[held++] = static_cast<char>(*data++);
    if (held == sizeof(float)) {
      add(cut);
      held = 0;
    }
    const size_t whole = n / sizeof(float);
    for (size_t i = 0; i < whole; ++i) {
      float x;
      std::memcpy(&x, data + i * sizeof(float), sizeof(x));
      to[i] += x;
    }
    to += whole;
    for (size_t i = whole * sizeof(float); i < n; ++i) cut[held++] = static_cast<char>(data[i]);
  });
}

// A worker's stream, with a queue and a thread of its own.
struct Connection {
  enum Tag : intptr_t { kAccepted = 1, kRead, kWritten };

  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer received;
  int64_t num_received = 0;
  // Guarded by the server's mutex.
  int64_t num_written = 0;
  bool writing = false;
};

class StreamServer : public ExchangeServer {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeServer>> Start(const ExchangeSpec& spec) {
    auto server = std::make_unique<StreamServer>();
    server->workers_ = spec.workers;
    const size_t bytes = BytesOf(spec.model);
    server->values_ = AlignedBuffer(bytes);
    server->sum_ = AlignedBuffer(bytes);
    std::memset(server->values_.data(), 0, bytes);
    {
      MutexLock lock(&server->mutex_);
      server->pieces_.resize(NumPieces(bytes));
    }
    server->address_ = spec.unix_socket ? absl::StrCat("unix:", spec.directory, "/stream") : "127.0.0.1:0";
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(server->address_, grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&server->service_);
    builder.SetMaxReceiveMessageSize(-1);
    for (int i = 0; i < spec.workers; ++i) {
      server->connections_.push_back(std::make_unique<Connection>());
      server->connections_.back()->queue = builder.AddCompletionQueue();
    }
    server->server_ = builder.BuildAndStart();
    if (server->server_ == nullptr) return absl::UnavailableError("the stream server does not start");
    if (!spec.unix_socket) server->address_ = absl::StrCat("127.0.0.1:", port);
    for (const auto& connection : server->connections_) {
      Connection* const c = connection.get();
      server->service_.RequestCall(&c->context, &c->stream, c->queue.get(), c->queue.get(),
                                   reinterpret_cast<void*>(Connection::kAccepted));
      StreamServer* const self = server.get();
      std::thread([self, c] { self->Serve(c); }).detach();
    }
    return std::unique_ptr<ExchangeServer>(std::move(server));
  }

  std::string address() const override { return address_; }

 private:
  struct PieceState {
    // Contributions held until the last one arrives.
    std::vector<grpc::ByteBuffer> held;
    // The number of steps applied to this piece.
    int64_t num_applied = 0;
  };

  void Serve(Connection* c) {
    void* tag;
    bool ok;
    while (c->queue->Next(&tag, &ok)) {
      if (!ok) return;  // the process is about to end
      switch (reinterpret_cast<intptr_t>(tag)) {
        case Connection::kRead:
          OnPiece(c);
          break;
        case Connection::kWritten:
          SetWritten(c);
          continue;
      }
      c->stream.Read(&c->received, reinterpret_cast<void*>(Connection::kRead));
    }
  }

  void OnPiece(Connection* c) {
    size_t piece = 0;
    std::vector<grpc::ByteBuffer> contributions;
    {
      MutexLock lock(&mutex_);
      piece = static_cast<size_t>(c->num_received++) % pieces_.size();
      std::vector<grpc::ByteBuffer>& held = pieces_[piece].held;
      held.emplace_back();
      held.back().Swap(&c->received);
      if (held.size() < static_cast<size_t>(workers_)) return;
      contributions.swap(held);
    }
    Apply(piece, contributions);
    {
      MutexLock lock(&mutex_);
      ++pieces_[piece].num_applied;
    }
    for (const auto& connection : connections_) WriteNext(connection.get());
  }

  void Apply(size_t piece, const std::vector<grpc::ByteBuffer>& contributions) {
    const size_t first = piece * kPieceBytes / sizeof(float);
    const size_t end = std::min(values_.size() / sizeof(float), first + kPieceBytes / sizeof(float));
    float* const values = values_.as<float>();
    float* const sum = sum_.as<float>();
    CopyTo(sum + first, contributions[0]);
    for (size_t i = 1; i < contributions.size(); ++i) AddTo(sum + first, contributions[i]);
    const float divisor = static_cast<float>(workers_);
    for (size_t i = first; i < end; ++i) values[i] -= sum[i] / divisor * 0.01f;
  }

  void SetWritten(Connection* c) {
    {
      MutexLock lock(&mutex_);
      c->writing = false;
    }
    WriteNext(c);
  }

  // Sends the next piece if the step has been applied to it and no other write is pending.
  void WriteNext(Connection* c) {
    size_t piece = 0;
    {
      MutexLock lock(&mutex_);
      piece = static_cast<size_t>(c->num_written) % pieces_.size();
      const int64_t steps = c->num_written / static_cast<int64_t>(pieces_.size());
      if (c->writing || pieces_[piece].num_applied == steps) return;
      c->writing = true;
      ++c->num_written;
    }
    c->stream.Write(Piece(values_, piece), reinterpret_cast<void*>(Connection::kWritten));
  }

  int workers_ = 1;
  std::string address_;
  AlignedBuffer values_, sum_;
  Mutex mutex_;
  std::vector<PieceState> pieces_ ABSL_GUARDED_BY(mutex_);
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::unique_ptr<grpc::Server> server_;
};

class StreamWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Connect(const ExchangeSpec& spec, const std::string& address,
                                                                 int index) {
    auto worker = std::make_unique<StreamWorker>();
    worker->gradient_ = AlignedBuffer(BytesOf(spec.model));
    worker->values_ = AlignedBuffer(BytesOf(spec.model));
    std::memset(worker->gradient_.data(), 0, worker->gradient_.size());
    worker->stub_ = std::make_unique<grpc::GenericStub>(PlainChannel(address));
    worker->stream_ = worker->stub_->PrepareCall(&worker->context_, "/stream", &worker->queue_);
    worker->stream_->StartCall(&worker->gradient_);
    if (worker->Next() == nullptr) return absl::UnavailableError(address);
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      if (!Exchange()) return absl::UnavailableError("the stream broke");
    }
    return absl::OkStatus();
  }

 private:
  bool Exchange() {
    const size_t pieces = NumPieces(values_.size());
    size_t written = 0;
    size_t read = 0;
    stream_->Read(&received_, &values_);
    stream_->Write(Piece(gradient_, 0), &gradient_);
    while (read < pieces || written < pieces) {
      const void* const tag = Next();
      if (tag == nullptr) return false;
      if (tag == &gradient_) {
        if (++written < pieces) stream_->Write(Piece(gradient_, written), &gradient_);
        continue;
      }
      CopyTo(values_.as<float>() + read * kPieceBytes / sizeof(float), received_);
      received_.Clear();
      if (++read < pieces) stream_->Read(&received_, &values_);
    }
    return true;
  }

  // Returns the tag of the next event; null if the stream is broken.
  const void* Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok ? tag : nullptr;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer received_;
  AlignedBuffer gradient_, values_;
};

}  // namespace

Exchange StreamExchange() { return {StreamServer::Start, StreamWorker::Connect}; }

}  // namespace benchmark
}  // namespace lockstep
