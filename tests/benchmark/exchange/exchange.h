#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace benchmark {

// What is exchanged in one step: every worker pushes a gradient for each variable of `model`, they are summed and
// applied (SGD), and every worker gets the new values.
struct ExchangeSpec {
  v1::ModelSpec model;
  // Of the processes, for a profiler.
  std::string name;
  int workers = 1;
  // A unix socket instead of loopback TCP.
  bool unix_socket = false;
  // Lockstep's workers share memory with the chief; the others do not know of it.
  bool share_memory = false;
  // All processes on one processor: where they do nothing at the same time, so that the time does not depend on whether
  // the scheduler puts both ends on the same one.
  bool one_processor = false;
  // Of the chief.
  int step_threads = 2;
  // For the unix socket; exists.
  std::string directory;
};

// Bytes of all variables.
size_t BytesOf(const v1::ModelSpec& model);

// The serving end. Lives in a process of its own.
class ExchangeServer {
 public:
  virtual ~ExchangeServer() = default;
  // For the workers: "127.0.0.1:1234" or "unix:/path".
  virtual std::string address() const = 0;
};

// One worker. Lives in a process of its own, on one thread.
class ExchangeWorker {
 public:
  virtual ~ExchangeWorker() = default;
  // Does the next n steps.
  virtual absl::Status Step(int n) = 0;
  // Helps another worker that has been late for some time, after this worker's own steps. Does nothing by default.
  virtual absl::Status HelpOthers() { return absl::OkStatus(); }
};

// A way to do it.
struct Exchange {
  std::function<absl::StatusOr<std::unique_ptr<ExchangeServer>>(const ExchangeSpec&)> serve;
  std::function<absl::StatusOr<std::unique_ptr<ExchangeWorker>>(const ExchangeSpec&, const std::string& address,
                                                                int index)>
      connect;
};

// The chief, its gRPC server and workers' step channels.
Exchange LockstepExchange();
// The same with momentum, and the worker of slot n waits n times `stagger` before it sends: contributions arrive one
// after the other, in order.
Exchange StaggeredExchange(absl::Duration stagger);
// Blocking sockets, a thread of the server for each worker; pieces of 256 KiB are summed as they arrive.
Exchange RawExchange();
// The same over bare gRPC: a stream for each worker by the generic API on completion queues, messages of 256 KiB that
// refer to the memory; what is received is summed where it lies, and each piece of the values goes out as soon as it is
// applied. What Lockstep takes beyond it is Lockstep's own.
Exchange StreamExchange();
// A protobuf message with a bytes field in a unary call.
Exchange NaiveExchange();
// No tensor at all: a message of a few bytes there and back on a gRPC stream, by the generic API on completion queues.
Exchange RoundTripExchange();

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_EXCHANGE_H_
