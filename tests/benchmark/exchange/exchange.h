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

// The exchange of one step: every worker pushes a gradient for each variable of `model`, they are summed and applied
// (SGD), and every worker receives the new values.
struct ExchangeSpec {
  v1::ModelSpec model;
  // The name of the processes, for a profiler.
  std::string name;
  int workers = 1;
  // If true, uses a unix socket instead of loopback TCP.
  bool unix_socket = false;
  // If true, Lockstep's workers share memory with the chief. Other systems ignore this.
  bool share_memory = false;
  // If true, all processes run on one processor. For exchanges whose processes do not run at the same time: the time
  // then does not depend on whether the scheduler puts both ends on the same processor.
  bool one_processor = false;
  // If true, workers count the bytes that they receive.
  bool counts_bytes = false;
  // The number of the chief's step threads.
  int step_threads = 2;
  // An existing folder for the unix socket.
  std::string directory;
  // Folders with certificates (--tls_dir) of Lockstep's chief and workers over TCP. If empty, there is no TLS.
  std::string chief_tls_dir;
  std::string worker_tls_dir;
};

// Returns the bytes of all variables.
size_t BytesOf(const v1::ModelSpec& model);

// The serving end, which has its own process.
class ExchangeServer {
 public:
  virtual ~ExchangeServer() = default;
  // The address for workers: "127.0.0.1:1234" or "unix:/path".
  virtual std::string address() const = 0;
};

// A worker, which has its own process and one thread.
class ExchangeWorker {
 public:
  virtual ~ExchangeWorker() = default;
  // Runs the next n steps.
  virtual absl::Status Step(int n) = 0;
  // Helps another worker that is late, after this worker's own steps. Does nothing by default.
  virtual absl::Status HelpOthers() { return absl::OkStatus(); }
  // Returns the bytes that were sent to all workers so far, or 0 if they are not known. Only for
  // ExchangeSpec::counts_bytes, because it costs a call.
  virtual absl::StatusOr<int64_t> BytesSent() { return int64_t{0}; }
};

// An implementation of the exchange.
struct Exchange {
  std::function<absl::StatusOr<std::unique_ptr<ExchangeServer>>(const ExchangeSpec&)> serve;
  std::function<absl::StatusOr<std::unique_ptr<ExchangeWorker>>(const ExchangeSpec&, const std::string& address,
                                                                int index)>
      connect;
};

// Lockstep: the chief, its gRPC server and workers' step channels.
Exchange LockstepExchange();
// Lockstep with momentum. The worker of slot n waits n * `stagger` before it sends, so that contributions arrive one
// after another, in order.
Exchange StaggeredExchange(absl::Duration stagger);
// Blocking sockets, with a server thread for each worker. Pieces of 256 KiB are summed as they arrive.
Exchange RawExchange();
// Bare gRPC: a stream for each worker, by the generic API on completion queues, with messages of 256 KiB that refer to
// the memory. Received data are summed in place, and each piece of the values is sent as soon as it is applied. The
// difference to LockstepExchange is Lockstep's own cost.
Exchange StreamExchange();
// A unary call with a protobuf message that has a bytes field.
Exchange NaiveExchange();
// No tensor: a message of a few bytes back and forth on a gRPC stream, by the generic API on completion queues.
Exchange RoundTripExchange();

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_
