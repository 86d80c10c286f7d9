#include "lockstep/common/client/testing/fake_chief_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/common/base/status_macros.h"

namespace lockstep {

class FakeChiefClient::Channel : public StepChannel {
 public:
  Channel(FakeChiefClient* client, ParameterLayout layout, std::deque<Event> events)
      : client_(client),
        layout_(std::move(layout)),
        values_(static_cast<size_t>(layout_.flat_elements()) * sizeof(float)),
        gradients_(values_.size()),
        events_(std::move(events)) {
    std::memset(values_.data(), 0, values_.size());
    for (const auto& variable : layout_.variables()) pointers_.push_back(values_.as<float>() + variable.flat_offset);
  }

  absl::StatusOr<Assignment> AwaitToken() override {
    MutexLock lock(&client_->mutex_);
    ++client_->calls_.await_token;
    client_->changed_.SignalAll();
    while (events_.empty() && !cancelled_ && !wait_cancelled_) client_->changed_.Wait(&client_->mutex_);
    if (cancelled_ || events_.empty()) return absl::CancelledError("cancelled");
    Event event = std::move(events_.front());
    events_.pop_front();
    if (!event.status.ok()) return event.status;
    event.assignment.values = pointers_;
    return event.assignment;
  }
  absl::Status SendReports(absl::Span<const v1::SlotReport> reports) override {
    MutexLock lock(&client_->mutex_);
    client_->calls_.reports += static_cast<int64_t>(reports.size());
    return absl::OkStatus();
  }
  float* GradientBuffer(int variable) override {
    return gradients_.as<float>() + layout_.variables()[variable].flat_offset;
  }
  absl::Status SendGradient(int) override {
    MutexLock lock(&client_->mutex_);
    ++client_->calls_.gradients;
    return absl::OkStatus();
  }
  absl::Status SendDifferences(int64_t, int, int64_t, absl::string_view) override {
    return absl::UnimplementedError("the fake chief does not compress");
  }
  absl::Status SendEndOfInput() override {
    MutexLock lock(&client_->mutex_);
    ++client_->calls_.ends_of_input;
    return absl::OkStatus();
  }
  absl::Status SendDigests(absl::Span<const uint64_t> digests) override {
    MutexLock lock(&client_->mutex_);
    client_->calls_.digests.emplace_back(digests.begin(), digests.end());
    return absl::OkStatus();
  }
  void Leave() override {
    MutexLock lock(&client_->mutex_);
    ++client_->calls_.leaves;
  }
  void CancelWait() override {
    MutexLock lock(&client_->mutex_);
    wait_cancelled_ = true;
    client_->changed_.SignalAll();
  }
  void Cancel() override {
    MutexLock lock(&client_->mutex_);
    ++client_->calls_.cancels;
    cancelled_ = true;
    client_->changed_.SignalAll();
  }

 private:
  FakeChiefClient* const client_;
  const ParameterLayout layout_;
  AlignedBuffer values_;
  AlignedBuffer gradients_;
  std::vector<const float*> pointers_;
  // The client's mutex guards all members below.
  std::deque<Event> events_;
  bool wait_cancelled_ = false;
  bool cancelled_ = false;
};

FakeChiefClient::Event FakeChiefClient::Gives(int64_t step, int64_t first_slot, int64_t slot_count) {
  Event event;
  event.assignment.token.set_step(step);
  event.assignment.token.set_first_slot(first_slot);
  event.assignment.token.set_slot_count(slot_count);
  return event;
}

FakeChiefClient::Event FakeChiefClient::Finishes(const std::string& message) {
  Event event;
  event.assignment.finished = true;
  event.assignment.finish_message = message;
  return event;
}

absl::Status FakeChiefClient::Answer(const std::vector<absl::Status>& answers, size_t call) {
  return answers.empty() ? absl::OkStatus() : answers[std::min(call, answers.size() - 1)];
}

absl::StatusOr<v1::GetRunSpecReply> FakeChiefClient::GetRunSpec() {
  MutexLock lock(&mutex_);
  const auto call = static_cast<size_t>(calls_.get_run++);
  changed_.SignalAll();
  while (get_run_hangs && !stopped_) changed_.Wait(&mutex_);
  if (stopped_) return absl::CancelledError("stopped");
  RETURN_IF_ERROR(Answer(get_run, call));
  v1::GetRunSpecReply reply;
  *reply.mutable_spec() = config;
  return reply;
}

absl::StatusOr<v1::OpenSessionReply> FakeChiefClient::OpenSession(const v1::OpenSessionRequest& request) {
  MutexLock lock(&mutex_);
  if (stopped_) return absl::CancelledError("stopped");
  calls_.open_session.push_back(request);
  RETURN_IF_ERROR(Answer(open_session, calls_.open_session.size() - 1));
  v1::OpenSessionReply reply;
  reply.set_session_id(calls_.open_session.size());
  reply.set_generation(1);
  if (wants_initial_values && !request.initial_values_digest().empty()) {
    reply.set_initial_values_wanted(true);
    return reply;
  }
  reply.set_initial_values_digest(initial_values_digest);
  reply.set_run_id(run_id);
  reply.set_global_step(global_step);
  reply.set_piece_elements(ParameterLayout::kSegmentElements);
  reply.set_lease_seconds(3);
  reply.set_canary_wanted(wants_canary && request.canary_digest().empty());
  return reply;
}

absl::StatusOr<v1::SetInitialValuesReply> FakeChiefClient::SetInitialValues(
    const v1::SetInitialValuesRequest& request) {
  MutexLock lock(&mutex_);
  if (stopped_) return absl::CancelledError("stopped");
  calls_.initial_values.push_back(request);
  RETURN_IF_ERROR(Answer(set_initial_values, calls_.initial_values.size() - 1));
  if (request.end()) wants_initial_values = false;
  return v1::SetInitialValuesReply();
}

absl::StatusOr<v1::GetCanaryValuesReply> FakeChiefClient::GetCanaryValues(const v1::GetCanaryValuesRequest& request) {
  MutexLock lock(&mutex_);
  if (stopped_) return absl::CancelledError("stopped");
  ++calls_.canary_values;
  ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(calls_.open_session.back().model()));
  // Returns one segment per call.
  const ParameterLayout::Segment& segment = layout.segments()[request.first_segment()];
  const ParameterLayout::Variable& variable = layout.variables()[segment.variable];
  const std::vector<float> values(static_cast<size_t>(segment.elements), canary_value);
  v1::GetCanaryValuesReply reply;
  v1::TensorPiece* const piece = reply.add_value();
  piece->set_variable(static_cast<uint32_t>(segment.variable));
  piece->set_offset(static_cast<uint64_t>(segment.offset));
  if (variable.spec.dtype() == v1::DT_FLOAT) {
    piece->set_content(values.data(), values.size() * sizeof(float));
  } else {
    piece->set_content(std::string(static_cast<size_t>(segment.elements) * variable.element_bytes, '\0'));
  }
  return reply;
}

absl::StatusOr<v1::HeartbeatReply> FakeChiefClient::Heartbeat(const v1::HeartbeatRequest&) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Answer(heartbeat, static_cast<size_t>(calls_.heartbeat++)));
  v1::HeartbeatReply reply;
  reply.set_finished(heartbeat_finished);
  return reply;
}

absl::StatusOr<v1::AddSummaryReply> FakeChiefClient::AddSummary(const v1::AddSummaryRequest& request) {
  MutexLock lock(&mutex_);
  calls_.summaries.push_back(request);
  return v1::AddSummaryReply();
}

absl::StatusOr<v1::RequestEndReply> FakeChiefClient::RequestFinish(const v1::RequestEndRequest& request) {
  MutexLock lock(&mutex_);
  calls_.ends.push_back(request);
  return v1::RequestEndReply();
}

absl::StatusOr<v1::ReadVariablesReply> FakeChiefClient::ReadVariables(const v1::ReadVariablesRequest& request) {
  MutexLock lock(&mutex_);
  calls_.reads.push_back(request);
  if (calls_.reads.size() > reads.size()) return absl::UnavailableError("nothing more to read");
  return reads[calls_.reads.size() - 1];
}

absl::StatusOr<std::unique_ptr<StepChannel>> FakeChiefClient::OpenStepChannel(const StepOptions& options,
                                                                              const v1::ModelSpec& model) {
  ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
  MutexLock lock(&mutex_);
  calls_.streams.push_back(options);
  std::deque<Event> events;
  if (calls_.streams.size() <= streams.size()) events = streams[calls_.streams.size() - 1];
  return std::unique_ptr<StepChannel>(new Channel(this, std::move(layout), std::move(events)));
}

void FakeChiefClient::CancelConnecting() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

FakeChiefClient::Calls FakeChiefClient::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

void FakeChiefClient::AwaitTokenCalls(int n) {
  MutexLock lock(&mutex_);
  while (calls_.await_token < n) changed_.Wait(&mutex_);
}

void FakeChiefClient::AwaitGetRunCalls(int n) {
  MutexLock lock(&mutex_);
  while (calls_.get_run < n) changed_.Wait(&mutex_);
}

}  // namespace lockstep
