#include "server/local/local_chief_client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/client/held_estimates.h"
#include "common/client/step_frame.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/parameter_layout.h"
#include "server/ps/published_values.h"

namespace lockstep {
namespace {

// Wakes the worker that waits in AwaitToken.
class Doorbell : public StepListener {
 public:
  void OnReplyReady() override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    rung_ = true;
    ringing_.SignalAll();
  }

  void OnClosed(const absl::Status& why, bool) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    end_.Update(why);
    ringing_.SignalAll();
  }

  // Await blocks no more.
  void Interrupt() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    interrupted_ = true;
    ringing_.SignalAll();
  }

  // Blocks until a reply may be ready. Errors: Cancelled, or why the chief has closed the connection.
  absl::Status Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!rung_ && !interrupted_ && end_.ok()) ringing_.Wait(&mutex_);
    const bool rung = std::exchange(rung_, false);
    if (!end_.ok() || rung) return end_;
    return absl::CancelledError("the wait for a token was interrupted");
  }

 private:
  Mutex mutex_;
  CondVar ringing_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

class LocalStepChannel : public StepChannel {
 public:
  LocalStepChannel(const ChiefClient::StepOptions& options, ParameterLayout layout, std::shared_ptr<Doorbell> doorbell,
                   std::shared_ptr<StepConnection> connection)
      : options_(options),
        layout_(std::move(layout)),
        estimates_(&layout_),
        gradients_(static_cast<size_t>(layout_.flat_elements()) * sizeof(float)),
        doorbell_(std::move(doorbell)),
        connection_(std::move(connection)) {}

  ~LocalStepChannel() override { connection_->Close(); }

  absl::StatusOr<Assignment> AwaitToken() override {
    StepFrame frame = NewFrame();
    frame.end = true;
    RETURN_IF_ERROR(connection_->OnFrame(frame));
    if (token_.slot_count() > 0) estimates_.Advance();
    StepReplyFrame reply;
    Assignment assignment;
    while (true) {
      while (!connection_->NextReply(&reply)) {
        RETURN_IF_ERROR(doorbell_->Await());
      }
      if (reply.fate != FATE_NONE) assignment.fate = reply.fate;
      if (reply.token || reply.finished) break;
    }
    assignment.finished = reply.finished;
    assignment.finish_message = reply.finish_message;
    token_ = reply.token.value_or(Token());
    assignment.token = token_;
    TakeValues(connection_->values());
    assignment.values = values_;
    if (options_.compression.top_k > 0 && reply.token) {
      TakeEstimates();
      ASSIGN_OR_RETURN(token_estimates_, estimates_.Take(token_.step(), {token_.first_slot(), token_.slot_count()}));
      assignment.estimates = token_estimates_;
    }
    return assignment;
  }

  absl::Status SendReports(absl::Span<const SlotReport> reports) override {
    StepFrame frame = NewFrame();
    frame.reports.assign(reports.begin(), reports.end());
    return connection_->OnFrame(frame);
  }

  float* GradientBuffer(int variable) override {
    return gradients_.as<float>() + layout_.variables()[variable].flat_offset;
  }

  absl::Status SendGradient(int variable) override {
    StepFrame frame = NewFrame();
    frame.gradients.resize(1);
    frame.gradients[0].variable = variable;
    frame.gradients[0].content = FloatChunks(GradientBuffer(variable), layout_.variables()[variable].elements);
    return connection_->OnFrame(frame);
  }

  absl::Status SendDifferences(int64_t slot, int variable, int64_t offset, absl::string_view differences) override {
    StepFrame frame = NewFrame();
    frame.gradients.push_back(SparsePiece(slot, variable, offset, differences));
    return connection_->OnFrame(frame);
  }

  void Leave() override {
    token_.Clear();
    StepFrame frame = NewFrame();
    frame.leave = true;
    connection_->OnFrame(frame).IgnoreError();
    connection_->Close();
  }

  void Interrupt() override { doorbell_->Interrupt(); }
  void Cancel() override { doorbell_->OnClosed(absl::CancelledError("the channel was cancelled"), /*at_once=*/true); }

 private:
  // Null before the first token.
  void TakeValues(std::shared_ptr<const PublishedValues> published) {
    if (published == nullptr || published == published_) return;
    published_ = std::move(published);
    values_.clear();
    for (const auto& variable : layout_.variables()) {
      const float* values = published_->flat->as<float>() + variable.flat_offset;
      if (published_->encoded != nullptr && variable.spec.trainable()) {
        if (decoded_.size() == 0) decoded_ = AlignedBuffer(gradients_.size());
        float* const decoded = decoded_.as<float>() + variable.flat_offset;
        FloatChunks(published_->type, published_->encoded->as<uint16_t>() + variable.flat_offset, variable.elements)
            .CopyTo(0, variable.elements, decoded);
        values = decoded;
      }
      values_.push_back(values);
    }
  }

  // Those of the token that are not held.
  void TakeEstimates() {
    const auto estimates = connection_->estimates();
    for (int64_t slot = token_.first_slot(); slot < token_.first_slot() + token_.slot_count(); ++slot) {
      if (!estimates_.Holds(token_.step(), slot)) estimates_.Copy(token_.step(), slot, *estimates->at(slot));
    }
  }

  StepFrame NewFrame() const {
    StepFrame frame;
    frame.session_id = options_.session_id;
    frame.epoch = options_.epoch;
    frame.startup_delay_steps = options_.startup_delay_steps;
    frame.step = token_.step();
    frame.block = {token_.first_slot(), token_.slot_count()};
    return frame;
  }

  const ChiefClient::StepOptions options_;
  const ParameterLayout layout_;
  HeldEstimates estimates_;  // of top-k compression
  std::vector<float*> token_estimates_;
  AlignedBuffer gradients_;  // flat
  const std::shared_ptr<Doorbell> doorbell_;
  const std::shared_ptr<StepConnection> connection_;
  Token token_;
  std::shared_ptr<const PublishedValues> published_;
  AlignedBuffer decoded_;  // of 16-bit values, flat
  std::vector<const float*> values_;
};

class LocalChiefClient : public ChiefClient {
 public:
  explicit LocalChiefClient(Chief* chief) : chief_(chief) {}

  absl::StatusOr<GetRunReply> GetRun() override { return chief_->GetRun(); }
  absl::StatusOr<OpenSessionReply> OpenSession(const OpenSessionRequest& request) override {
    return chief_->OpenSession(request);
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override {
    return chief_->Heartbeat(request);
  }
  absl::StatusOr<RunStatus> GetStatus() override { return chief_->GetStatus(); }

  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const ModelSpec& model) override {
    ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
    auto doorbell = std::make_shared<Doorbell>();
    ASSIGN_OR_RETURN(auto connection,
                     chief_->OpenStep(options.session_id, options.epoch, ValuePath::kHandedOver, doorbell));
    return std::unique_ptr<StepChannel>(
        new LocalStepChannel(options, std::move(layout), std::move(doorbell), std::move(connection)));
  }

 private:
  Chief* const chief_;
};

}  // namespace

std::unique_ptr<ChiefClient> NewLocalChiefClient(Chief* chief) { return std::make_unique<LocalChiefClient>(chief); }

}  // namespace lockstep
