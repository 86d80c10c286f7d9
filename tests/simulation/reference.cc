#include "lockstep/tests/simulation/reference.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/stored_variable.h"
#include "lockstep/common/contract/canary_values.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/tests/simulation/random.h"

namespace lockstep {
namespace simulation {

const char kCountingHook[] = "count";

namespace {

constexpr int kTrainable = 3;
constexpr int kCounter = 3;
constexpr int kElements[] = {5, 3, 2, 2};
constexpr const char* kNames[] = {"a", "b", "c", "counter"};
constexpr float kInitial[] = {0.5f, 0, -0.25f, 0};
constexpr char kMomentum[] = "/Momentum";
// Beyond every run's last step.
constexpr int64_t kMaxSteps = 1000;

float Noise(const SlotKey& key, int variable, int element) {
  Random random(key.seed * 1000003 + static_cast<uint64_t>(((key.step * 64 + key.slot) * 8 + variable) * 8 + element));
  return static_cast<float>(random.Between(-1000000, 1000000)) * 1e-6f;
}

float GradientAt(const SlotKey& key, VariableValues values, int variable, int element) {
  const float own = values[variable][element];
  const float other = values[(variable + 1) % kTrainable][0];
  return own * 0.3f - other * 0.1f + Noise(key, variable, element);
}

// Small integers, of which floats hold the sum: each slot adds its own.
float CountAt(const SlotKey& key, int element) {
  return element == 0 ? 1.0f : static_cast<float>(1 + (key.step * 7 + key.slot * 3) % 50);
}

float LossAt(const SlotKey& key, VariableValues values) { return values[0][0] * values[0][0] + Noise(key, 7, 7); }

class TinyModel : public Model {
 public:
  TinyModel(const RunRules& rules, ComputeHooks hooks) : rules_(rules), hooks_(std::move(hooks)) {}
  const v1::ModelSpec& spec() const override { return TinyModelSpec(); }
  absl::Status ComputeGradients(VariableValues values, const Batch&, const SlotKey& key, GradientSink* sink) override {
    if (hooks_.before_slot) hooks_.before_slot(key, values);
    const bool finite = key.step != rules_.non_finite_step || key.slot != rules_.non_finite_slot;
    const float loss = finite ? LossAt(key, values) : std::numeric_limits<float>::quiet_NaN();
    if (!sink->OnLoss(loss)) return absl::CancelledError("the gradients are no longer wanted");
    if (key.step == rules_.stop_step && key.slot == rules_.stop_slot) sink->RequestStop();
    float counts[2];
    for (int i = 0; i < kElements[kCounter]; ++i) counts[i] = CountAt(key, i);
    sink->OnUpdate(0, counts);
    for (int variable = kTrainable - 1; variable >= 0; --variable) {
      if (hooks_.before_gradient) hooks_.before_gradient();
      float* const gradient = sink->GradientBuffer(variable);
      for (int i = 0; i < kElements[variable]; ++i) gradient[i] = GradientAt(key, values, variable, i);
      sink->OnGradient(variable);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  const RunRules rules_;
  const ComputeHooks hooks_;
};

// Empty batches, for so many slots in all.
class CountedBatches : public BatchSource {
 public:
  CountedBatches(int64_t slots, int64_t batches) : slots_(slots), batches_(batches) {}
  const ExampleSpec& spec() const override { return spec_; }
  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override {
    if (batches_ >= 0 && step * slots_ + slot >= batches_) return absl::OutOfRangeError("the input has ended");
    return Batch();
  }

 private:
  const int64_t slots_, batches_;
  const ExampleSpec spec_;
};

absl::Status Compare(const std::string& what, const float* got, const std::vector<float>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::memcmp(&got[i], &wanted[i], sizeof(float)) == 0) continue;
    return absl::DataLossError(absl::StrCat(what, "[", i, "] is ", got[i], ", in the undisturbed run ", wanted[i]));
  }
  return absl::OkStatus();
}

}  // namespace

const v1::ModelSpec& TinyModelSpec() {
  static const v1::ModelSpec* const spec = [] {
    auto* model = new v1::ModelSpec;
    for (int i = 0; i <= kCounter; ++i) {
      v1::VariableSpec* const variable = model->add_variables();
      variable->set_name(kNames[i]);
      variable->set_dtype(v1::DT_FLOAT);
      variable->add_shape(kElements[i]);
      variable->set_trainable(i < kTrainable);
      variable->mutable_initializer()->mutable_constant()->set_value(kInitial[i]);
    }
    v1::UpdateOpSpec* const op = model->add_update_ops();
    op->set_variable(kNames[kCounter]);
    op->set_kind(v1::UpdateOpSpec::ASSIGN_ADD);
    return model;
  }();
  return *spec;
}

std::string RunRules::Describe() const {
  std::string text;
  if (batches >= 0) absl::StrAppend(&text, ", ", batches, " batches");
  if (stop_step >= 0) absl::StrAppend(&text, ", slot ", stop_slot, " of step ", stop_step, " asks for the end");
  if (non_finite_step >= 0) absl::StrAppend(&text, ", a loss of step ", non_finite_step, " is NaN");
  if (!followed) return text;
  absl::StrAppend(&text, ", a program follows and takes ", absl::FormatDuration(hook_time));
  if (patience > 0) absl::StrAppend(&text, ", patience ", patience, " at every ", check_every, ". step");
  if (!assign_at.empty()) absl::StrAppend(&text, ", sets variables after ", absl::StrJoin(assign_at, " and "));
  return text;
}

RunChanges ChangesOf(const config::v1::RunSpec& config) {
  RunChanges changes;
  changes.rates.emplace_back(0, config.optimizer().learning_rate().initial());
  return changes;
}

RunChanges ChangesOf(const v1::RunRecord& record) {
  RunChanges changes;
  int64_t from = 0;
  for (const v1::RunRecord::Change& change : record.change()) {
    changes.rates.emplace_back(from, change.before().optimizer().learning_rate().initial());
    from = change.step();
  }
  changes.rates.emplace_back(from, record.config().optimizer().learning_rate().initial());
  for (const v1::RunRecord::Assignment& assignment : record.assignment()) {
    changes.assignments.push_back(
        {assignment.step(), std::vector<std::string>(assignment.variable().begin(), assignment.variable().end())});
  }
  return changes;
}

Workload NewTinyWorkload(const config::v1::RunSpec& config, const RunRules& rules, ComputeHooks hooks) {
  Workload workload;
  workload.batches = std::make_unique<CountedBatches>(config.training().replicas_to_aggregate(), rules.batches);
  workload.model = std::make_unique<TinyModel>(rules, std::move(hooks));
  return workload;
}

std::vector<float> AssignedValues(const std::string& name) {
  std::vector<float> values;
  for (int v = 0; v <= kCounter; ++v) {
    if (!absl::StartsWith(name, kNames[v]) || (name != kNames[v] && name != absl::StrCat(kNames[v], kMomentum)))
      continue;
    for (int i = 0; i < kElements[v]; ++i) values.push_back(static_cast<float>(name.size()) - 0.125f * i);
  }
  return values;
}

void SeenUpdates::See(const v1::StepCommit& commit) {
  step = commit.step();
  const double loss = commit.mean_loss();
  uint64_t bits = 0;
  std::memcpy(&bits, &loss, sizeof(bits));
  losses = (losses ^ bits) * 0x100000001b3 + static_cast<uint64_t>(commit.step());
}

absl::StatusOr<v1::SessionState> SessionStateOf(const BundleReader& reader) {
  v1::SessionState state;
  if (!reader.Contains(kSessionStateKey)) return state;
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kSessionStateKey));
  const absl::Span<const uint8_t> bytes = tensor.flat<uint8_t>();
  if (state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return state;
  return absl::DataLossError(absl::StrCat(reader.prefix(), ": ", kSessionStateKey, " does not parse"));
}

Reference::Reference(const config::v1::RunSpec& config, const RunRules& rules, RunChanges changes)
    : config_(config), rules_(rules), changes_(std::move(changes)) {
  State first;
  for (int i = 0; i <= kCounter; ++i) first.values.emplace_back(kElements[i], kInitial[i]);
  for (int i = 0; i < kTrainable; ++i) first.momentum.emplace_back(kElements[i], 0.0f);
  Assign(0, &first);
  states_.push_back(std::move(first));
  const ParameterLayout layout = ParameterLayout::Create(TinyModelSpec()).value();
  for (const auto& variable : layout.variables()) {
    canary_.emplace_back(variable.elements);
    FillCanaryValues(config_.training().seed(), variable, /*offset=*/0, absl::MakeSpan(canary_.back()));
  }
}

const Reference::State& Reference::At(int64_t step) const {
  while (static_cast<int64_t>(states_.size()) <= step) {
    const auto made = static_cast<int64_t>(states_.size());
    State next = Next(states_.back(), made - 1);
    v1::StepCommit commit;
    commit.set_step(made);
    commit.set_mean_loss(next.mean_loss);
    next.seen.See(commit);
    Assign(made, &next);
    states_.push_back(std::move(next));
  }
  return states_[static_cast<size_t>(step)];
}

void Reference::Assign(int64_t step, State* state) const {
  for (const RunChanges::Assignment& assignment : changes_.assignments) {
    if (assignment.step != step) continue;
    for (const std::string& name : assignment.variables) {
      for (int v = 0; v <= kCounter; ++v) {
        if (name == kNames[v]) state->values[v] = AssignedValues(name);
        if (v < kTrainable && name == absl::StrCat(kNames[v], kMomentum)) state->momentum[v] = AssignedValues(name);
      }
    }
  }
}

int64_t Reference::LastStep() const {
  const config::v1::TrainingConfig& training = config_.training();
  int64_t last = kMaxSteps;
  if (training.steps() > 0) last = training.steps();
  if (training.additional_steps() > 0) last = training.additional_steps();
  if (rules_.batches >= 0) last = std::min(last, rules_.batches / training.replicas_to_aggregate());
  if (rules_.stop_step >= 0) last = std::min(last, rules_.stop_step + 1);
  if (rules_.non_finite_step >= 0) last = std::min(last, rules_.non_finite_step);
  if (rules_.patience == 0) return last;
  double best = std::numeric_limits<double>::infinity();
  int64_t looks = 0;
  for (int64_t step = rules_.check_every; step < last; step += rules_.check_every) {
    const double loss = At(step).mean_loss;
    looks = loss < best ? 0 : looks + 1;
    best = std::min(best, loss);
    if (looks >= rules_.patience) return step;
  }
  return last;
}

Reference::State Reference::Next(const State& state, int64_t step) const {
  const int64_t slots = config_.training().replicas_to_aggregate();
  float rate = 0;
  for (const auto& [from, value] : changes_.rates) {
    if (from <= step) rate = value;
  }
  const float momentum = config_.optimizer().momentum().momentum();
  std::vector<const float*> values;
  for (const auto& variable : state.values) values.push_back(variable.data());
  State next = state;
  const auto key = [&](int64_t slot) { return SlotKey{config_.training().seed(), step, slot}; };
  for (int v = 0; v < kTrainable; ++v) {
    for (int i = 0; i < kElements[v]; ++i) {
      // ((g0+g1)+(g2+g3))+...: neighbours are added until one is left.
      std::vector<float> sums;
      for (int64_t slot = 0; slot < slots; ++slot) sums.push_back(GradientAt(key(slot), values, v, i));
      while (sums.size() > 1) {
        std::vector<float> pairs;
        for (size_t j = 0; j < sums.size(); j += 2) {
          pairs.push_back(j + 1 < sums.size() ? sums[j] + sums[j + 1] : sums[j]);
        }
        sums = std::move(pairs);
      }
      const float gradient = sums[0] / static_cast<float>(slots);
      next.momentum[v][i] = state.momentum[v][i] * momentum + gradient;
      next.values[v][i] = state.values[v][i] - next.momentum[v][i] * rate;
    }
  }
  next.mean_loss = 0;
  for (int64_t slot = 0; slot < slots; ++slot) {
    next.mean_loss += LossAt(key(slot), values);
    for (int i = 0; i < kElements[kCounter]; ++i) next.values[kCounter][i] += CountAt(key(slot), i);
  }
  next.mean_loss /= static_cast<double>(slots);
  return next;
}

absl::Status Reference::CheckValues(int64_t step, VariableValues values) const {
  if (step < 0 || step > kMaxSteps) return absl::OutOfRangeError(absl::StrCat("step ", step));
  for (int v = 0; v <= kCounter; ++v) {
    RETURN_IF_ERROR(Compare(absl::StrCat("step ", step, ": ", kNames[v]), values[v], At(step).values[v]));
  }
  return absl::OkStatus();
}

absl::Status Reference::CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) const {
  if (step < 0 || step > kMaxSteps) return absl::OutOfRangeError(absl::StrCat("step ", step));
  const State& state = At(step);
  for (const train::NamedTensor& named : values) {
    if (named.name == "global_step" && named.value.flat<int64_t>()[0] != step) {
      return absl::DataLossError(absl::StrCat("global_step is ", named.value.flat<int64_t>()[0], " at step ", step));
    }
    for (int v = 0; v <= kCounter; ++v) {
      const std::string momentum = absl::StrCat(kNames[v], kMomentum);
      const std::string what = absl::StrCat("step ", step, ": ", named.name);
      if (named.name == kNames[v]) {
        RETURN_IF_ERROR(Compare(what, named.value.flat<float>().data(), state.values[v]));
      } else if (v < kTrainable && named.name == momentum) {
        RETURN_IF_ERROR(Compare(what, named.value.flat<float>().data(), state.momentum[v]));
      }
    }
  }
  return absl::OkStatus();
}

bool Reference::AreCanaryValues(VariableValues values) const {
  for (int v = 0; v <= kCounter; ++v) {
    if (!Compare("", values[v], canary_[v]).ok()) return false;
  }
  return true;
}

absl::Status Reference::CheckSessionState(int64_t step, const v1::SessionState& state) const {
  if (!rules_.followed) return absl::OkStatus();
  int64_t seen = state.step();
  if (state.hook_size() == 0) return seen == step ? absl::OkStatus() : absl::DataLossError("it has no hooks");
  for (const auto& hook : state.hook()) {
    const std::string wanted = At(seen).seen.ToString();
    if (hook.name() != kCountingHook || hook.state() == wanted) continue;
    return absl::DataLossError(
        absl::StrCat("hook ", hook.name(), " keeps ", hook.state(), ", in the undisturbed run ", wanted));
  }
  for (const v1::StepCommit& commit : state.unseen()) {
    ++seen;
    if (commit.step() == seen && commit.mean_loss() == At(seen).mean_loss) continue;
    return absl::DataLossError(absl::StrCat("the update to step ", commit.step(), " is kept with loss ",
                                            commit.mean_loss(), " as that to ", seen, " with ", At(seen).mean_loss));
  }
  if (seen == step) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the hooks have seen ", state.step(), ", and ", state.unseen_size(), " updates are kept for them"));
}

absl::Status Reference::CheckCheckpoint(const BundleReader& reader) const {
  RETURN_IF_ERROR(reader.Verify());
  std::vector<train::NamedTensor> values;
  for (int v = -1; v <= kCounter; ++v) {
    const std::string name = v < 0 ? "global_step" : kNames[v];
    ASSIGN_OR_RETURN(Tensor value, reader.Read(name));
    values.push_back({name, std::move(value)});
    if (v < 0 || v >= kTrainable) continue;
    ASSIGN_OR_RETURN(Tensor momentum, reader.Read(absl::StrCat(name, kMomentum)));
    values.push_back({absl::StrCat(name, kMomentum), std::move(momentum)});
  }
  const int64_t step = values[0].value.flat<int64_t>()[0];
  RETURN_IF_ERROR(CheckNamed(step, values));
  ASSIGN_OR_RETURN(const v1::SessionState state, SessionStateOf(reader));
  return CheckSessionState(step, state);
}

}  // namespace simulation
}  // namespace lockstep
