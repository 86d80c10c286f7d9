#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace benchmark {

// Describes an exchange. In each step, every worker pushes a gradient for each variable of `model`, the server sums and
// applies the gradients (SGD), and every worker receives the new values.
struct ExchangeSpec {
  v1::ModelSpec model;
  // The processes' name, as shown by a profiler.
  std::string name;
  int workers = 1;
  // If true, uses a unix socket instead of loopback TCP.
  bool unix_socket = false;
  // If true, Lockstep's workers share memory with the chief. Other systems ignore this.
  bool share_memory = false;
  // If true, all processes run on one processor. Intended for exchanges whose processes never run at the same time, so
  // that the measured time does not depend on whether the scheduler places both ends on the same processor.
  bool one_processor = false;
  // If true, the bytes that workers receive are measured.
  bool counts_bytes = false;
  // The number of the chief's step threads.
  int step_threads = 2;
  // An existing folder for the unix socket.
  std::string directory;
  // The logdir of Lockstep's chief. If empty, nothing is saved.
  std::string logdir;
  // Folders with certificates (--tls_dir) for Lockstep's chief and workers over TCP, and for viewers. If empty, TLS is
  // not used.
  std::string chief_tls_dir;
  std::string worker_tls_dir;
  std::string viewer_tls_dir;
};

// Returns the total size of all variables in bytes.
size_t BytesOf(const v1::ModelSpec& model);

// The server side of an exchange. Runs in its own process.
class ExchangeServer {
 public:
  virtual ~ExchangeServer() = default;
  // The address for workers: "127.0.0.1:1234" or "unix:/path".
  virtual std::string address() const = 0;
};

// A worker of an exchange. Runs in its own process, with one thread.
class ExchangeWorker {
 public:
  virtual ~ExchangeWorker() = default;
  // Runs the next n steps.
  virtual absl::Status Step(int n) = 0;
  // Called when this worker has finished its steps but another worker is late. Helps the late worker. Does nothing by
  // default.
  virtual absl::Status HelpOthers() { return absl::OkStatus(); }
  // Returns the number of bytes sent to all workers so far, or 0 if it is unknown. Called only with
  // ExchangeSpec::counts_bytes, because it costs an RPC.
  virtual absl::StatusOr<int64_t> BytesSent() { return int64_t{0}; }
};

// An implementation of the exchange.
struct Exchange {
  std::function<absl::StatusOr<std::unique_ptr<ExchangeServer>>(const ExchangeSpec&)> serve;
  std::function<absl::StatusOr<std::unique_ptr<ExchangeWorker>>(const ExchangeSpec&, const std::string& address,
                                                                int index)>
      connect;
};

// Lockstep: the chief, its gRPC server, and the workers' step channels.
Exchange LockstepExchange();
// Lockstep with momentum. The worker of slot n waits n * `stagger` before it sends, so that contributions arrive one by
// one, in order.
Exchange StaggeredExchange(absl::Duration stagger);
// Blocking sockets with a server thread for each worker. The server sums pieces of 256 KiB as they arrive.
Exchange RawExchange();
// Bare gRPC: one stream per worker, using the generic API with completion queues and messages of 256 KiB that refer to
// the tensors' memory. Received data is summed in place, and each piece of the values is sent as soon as the step has
// been applied to it. The difference between this and LockstepExchange is Lockstep's own cost.
Exchange StreamExchange();
// Plain gRPC: a unary call whose protobuf messages carry the tensors in a bytes field.
Exchange NaiveExchange();
// No tensors: a message of a few bytes goes back and forth on a gRPC stream, with the generic API on completion queues.
Exchange RoundTripExchange();

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_
