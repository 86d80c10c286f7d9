#include "lockstep/common/transport/grpc_run_feed.h"

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "lockstep/common/transport/connection/channel.h"
#include "lockstep/common/transport/connection/status_conversion.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

class GrpcRunFeed : public RunFeed {
 public:
  GrpcRunFeed(const std::string& target, const v1::WatchRunRequest& request, const GrpcClientOptions& options)
      : target_(target),
        stub_(v1::ChiefService::NewStub(NewChannel(target, options.credentials, options.connect_timeout))),
        reader_(stub_->WatchRun(&context_, request)) {}

  absl::Status Read(v1::WatchRunReply* reply) override {
    if (!status_.ok()) return status_;
    if (reader_->Read(reply)) return absl::OkStatus();
    status_ = FromGrpc(reader_->Finish());
    if (status_.ok()) status_ = absl::UnavailableError(absl::StrCat("the chief at ", target_, " ended the stream"));
    return status_;
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  const std::string target_;
  const std::unique_ptr<v1::ChiefService::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReader<v1::WatchRunReply>> reader_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<RunFeed> NewGrpcRunFeed(const std::string& target, const v1::WatchRunRequest& request,
                                        const GrpcClientOptions& options) {
  return std::make_unique<GrpcRunFeed>(target, request, options);
}

}  // namespace lockstep
