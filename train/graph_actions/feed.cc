#include "lockstep/train/graph_actions/feed.h"

#include <memory>
#include <utility>

#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep::train::graph_actions {
namespace {

class FedBatches : public BatchSource {
 public:
  FedBatches(const ExampleSpec& spec, FeedFunction feed) : spec_(spec), feed_(std::move(feed)) {}

  const ExampleSpec& spec() const override { return spec_; }
  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override { return feed_(step, slot); }

 private:
  const ExampleSpec spec_;
  const FeedFunction feed_;
};

}  // namespace

WorkloadFactory Fed(WorkloadFactory make, FeedFunction feed) {
  return [make = std::move(make), feed = std::move(feed)](const config::v1::RunSpec& spec) -> absl::StatusOr<Workload> {
    ASSIGN_OR_RETURN(Workload workload, make(spec));
    workload.batches = std::make_unique<FedBatches>(workload.batches->spec(), feed);
    workload.data = absl::nullopt;
    return workload;
  };
}

}  // namespace lockstep::train::graph_actions
