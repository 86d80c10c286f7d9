#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_RUN_FEED_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_RUN_FEED_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// A stream of a chief's reports about its run: one call of WatchRun. Only Cancel may be called from another thread.
class RunFeed {
 public:
  virtual ~RunFeed() = default;
  // Blocks until the next reply arrives; one arrives every second. Errors: those of WatchRun; Unavailable if the chief
  // does not answer or is gone; Cancelled after Cancel. After an error there is no further reply.
  virtual absl::Status Read(v1::WatchRunReply* reply) = 0;
  // Makes the current call of Read and all later ones fail. Thread-safe.
  virtual void Cancel() = 0;
};

// Starts watching the chief at `target`, in gRPC's syntax. Uses the credentials and connect_timeout of the options.
std::unique_ptr<RunFeed> NewGrpcRunFeed(const std::string& target, const v1::WatchRunRequest& request,
                                        const GrpcClientOptions& options = {});

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_RUN_FEED_H_
