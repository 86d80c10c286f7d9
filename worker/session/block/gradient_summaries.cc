#include "lockstep/worker/session/block/gradient_summaries.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/summary/histogram.h"
#include "lockstep/worker/session/block/gradient_norm.h"

namespace lockstep {

GradientSummaries::GradientSummaries(int64_t every_steps, const v1::ModelSpec& model, GradientSink* sink)
    : ForwardingSink(sink), every_steps_(every_steps), model_(model) {
  for (const v1::VariableSpec& variable : model.variables()) trainable_ += variable.trainable();
}

void GradientSummaries::BeginSlot(const SlotKey& key) {
  key_ = key;
  reports_ = every_steps_ > 0 && key.slot == 0 && key.step % every_steps_ == 0;
  held_.clear();
}

void GradientSummaries::OnGradient(int variable) {
  if (!reports_) return sink()->OnGradient(variable);
  held_.push_back(variable);
  if (held_.size() < trainable_) return;
  Report();
  for (const int held : held_) sink()->OnGradient(held);
  held_.clear();
}

void GradientSummaries::Report() {
  std::vector<int> sorted = held_;
  std::sort(sorted.begin(), sorted.end());
  v1::Summary summary;
  for (const int variable : sorted) Summarize(variable, &summary);
  const absl::Status reported = sink()->OnSummary(summary);
  LOG_IF(ERROR, !reported.ok()) << "the gradients of step " << key_.step << ": " << reported.message();
}

void GradientSummaries::Summarize(int variable, v1::Summary* summary) {
  const v1::VariableSpec& spec = model_.variables(variable);
  size_t elements = 1;
  for (const int64_t dim : spec.shape()) elements *= static_cast<size_t>(dim);
  const absl::Span<const float> gradient(sink()->GradientBuffer(variable), elements);
  auto histogram = MakeHistogram(gradient);
  if (histogram.ok()) {
    v1::Summary::Value* const value = summary->add_value();
    value->set_tag(absl::StrCat(spec.name(), "/gradient"));
    *value->mutable_histo() = *std::move(histogram);
  } else {
    // The chief reports the non-finite gradient, and ends the run or skips the step.
    LOG(WARNING) << "the gradient of " << spec.name() << " at step " << key_.step
                 << " has no histogram: " << histogram.status().message();
  }
  v1::Summary::Value* const norm = summary->add_value();
  norm->set_tag(absl::StrCat(spec.name(), "/gradient_norm"));
  norm->set_simple_value(static_cast<float>(std::sqrt(SumOfSquares(gradient))));
}

}  // namespace lockstep
