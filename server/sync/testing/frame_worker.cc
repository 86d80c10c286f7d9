#include "lockstep/server/sync/testing/frame_worker.h"

#include <cmath>
#include <utility>

#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/contract/gradient_digest.h"
#include "lockstep/server/sync/policy/deterministic.h"

namespace lockstep {

v1::ModelSpec FrameModel() {
  v1::ModelSpec model;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "mean" dtype: DT_FLOAT shape: 2 }
    variables { name: "big" dtype: DT_FLOAT shape: 65540 trainable: true }
    update_ops { variable: "mean" kind: ASSIGN }
  )",
                                                      &model));
  return model;
}

class FrameWorker::Listener : public StepListener {
 public:
  void OnReplyReady() override {
    MutexLock lock(&mutex_);
    ++rings_;
  }
  void OnResume() override {
    MutexLock lock(&mutex_);
    resumed_ = true;
  }
  void OnClosed(const absl::Status& why, bool at_once) override {
    MutexLock lock(&mutex_);
    closed_ = why;
    cancelled_ |= at_once;
  }
  bool TakeResumed() {
    MutexLock lock(&mutex_);
    return std::exchange(resumed_, false);
  }
  int rings() const {
    MutexLock lock(&mutex_);
    return rings_;
  }
  absl::Status closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }
  bool cancelled() const {
    MutexLock lock(&mutex_);
    return cancelled_;
  }

 private:
  mutable Mutex mutex_;
  int rings_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool resumed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<StepPolicy> FramePolicy(int64_t slots, absl::Duration lease) {
  DeterministicPolicy::Options options;
  options.queue.slots = slots;
  options.queue.lease = lease;
  return std::make_unique<DeterministicPolicy>(options, /*step=*/0);
}

FrameWorker::FrameWorker(uint64_t session, int64_t generation, const Connector& connect)
    : session_(session),
      generation_(generation),
      layout_(*ParameterLayout::Create(FrameModel())),
      listener_(std::make_shared<Listener>()),
      connection_(connect(listener_)) {}

FrameWorker::~FrameWorker() { connection_->Close(); }

absl::Status FrameWorker::Ask(int64_t startup_delay_steps) {
  token_.reset();
  results_.clear();
  StepFrame frame = NewFrame(v1::Token());
  frame.startup_delay_steps = startup_delay_steps;
  frame.end = true;
  const absl::Status status = Send(frame);
  Drain();
  return status;
}

absl::Status FrameWorker::Push() {
  CHECK(token_) << "no token";
  return Push(v1::Token(*token_));
}

absl::Status FrameWorker::Push(const v1::Token& token) {
  token_.reset();
  results_.clear();
  StepFrame frame = NewFrame(token);
  AddReports(&frame);
  AddAllPieces(&frame);
  if (token.digest()) {
    // In the model's order. AddAllPieces adds the gradients in reverse order.
    frame.digests = {GradientDigest(*gradients_.back()), GradientDigest(*gradients_[gradients_.size() - 2])};
  }
  frame.end = true;
  const absl::Status status = Send(frame);
  Drain();
  return status;
}

absl::Status FrameWorker::Leave() {
  StepFrame frame = NewFrame(v1::Token());
  frame.leave = true;
  const absl::Status status = Send(frame);
  connection_->Close();
  return status;
}

StepFrame FrameWorker::NewFrame(const v1::Token& token) const {
  StepFrame frame;
  frame.session_id = session_;
  frame.generation = generation_;
  frame.step = token.step();
  frame.block = {token.first_slot(), token.slot_count()};
  return frame;
}

void FrameWorker::AddReports(StepFrame* frame) const {
  for (int64_t slot = frame->block.first; slot < frame->block.end(); ++slot) {
    v1::SlotReport report;
    report.set_slot(slot);
    report.set_loss(static_cast<float>(slot + 1));
    const float mean[2] = {static_cast<float>(frame->step), static_cast<float>(slot)};
    report.add_update(std::string(reinterpret_cast<const char*>(mean), sizeof(mean)));
    frame->reports.push_back(std::move(report));
  }
}

void FrameWorker::AddPiece(int64_t variable, int64_t offset, int64_t elements, StepFrame* frame) {
  float sum = 0;
  for (int64_t slot = frame->block.first; slot < frame->block.end(); ++slot) {
    sum += static_cast<float>((frame->step + 1) * (slot + 1));
  }
  gradients_.push_back(std::make_unique<std::vector<float>>(elements, sum));
  if (errs_ && variable == 2) {
    float& last = gradients_.back()->back();
    last = std::nextafter(last, 0.0f);
  }
  StepPiece piece;
  piece.variable = variable;
  piece.offset = offset;
  piece.content = FloatChunks(gradients_.back()->data(), elements);
  frame->gradients.push_back(std::move(piece));
}

void FrameWorker::AddAllPieces(StepFrame* frame) {
  AddPiece(2, 0, 65540, frame);
  AddPiece(0, 0, 3, frame);
}

void FrameWorker::Drain() {
  for (StepReplyFrame reply; connection_->NextReply(&reply); Clear(&reply)) {
    if (reply.result != v1::CONTRIBUTION_NONE) results_.push_back(reply.result);
    for (const StepPiece& piece : reply.values) {
      auto& flat = values_[reply.values_step];
      flat.resize(layout_.flat_elements());
      piece.content.CopyTo(0, piece.content.size(),
                           flat.data() + layout_.variables()[piece.variable].flat_offset + piece.offset);
      ++pieces_[reply.values_step];
    }
    if (reply.token) {
      token_ = reply.token;
      values_memory_ = reply.values_memory;
      if (reply.settings) settings_ = reply.settings;
    }
    if (reply.finished) {
      finished_ = true;
      finish_message_ = reply.finish_message;
    }
  }
}

int64_t FrameWorker::values_step() const {
  int64_t newest = -1;
  for (const auto& entry : pieces_) {
    if (entry.second >= kFrameModelSegments) newest = entry.first;
  }
  return newest;
}

float FrameWorker::value(int variable, int64_t element) const {
  const auto it = values_.find(values_step());
  CHECK(it != values_.end()) << "no values";
  return it->second[layout_.variables()[variable].flat_offset + element];
}

absl::Status FrameWorker::Send(const StepFrame& frame) {
  bool waits = false;
  const absl::Status status = connection_->OnFrame(frame, &waits);
  if (waits) waiting_ = frame;
  return status;
}

bool FrameWorker::Resume() {
  if (!listener_->TakeResumed()) return false;
  const StepFrame frame = *std::exchange(waiting_, absl::nullopt);
  if (!Send(frame).ok()) return false;
  Drain();
  return true;
}

int FrameWorker::rings() const { return listener_->rings(); }
absl::Status FrameWorker::closed() const { return listener_->closed(); }
bool FrameWorker::cancelled() const { return listener_->cancelled(); }

}  // namespace lockstep
