#include "lockstep/tests/simulation/roles/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/contract/canary_values.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/tests/simulation/world/random.h"

namespace lockstep {
namespace simulation {

const char kCountingHook[] = "count";

namespace {

constexpr int kTrainable = 3;
// An int32. The values of the reference have its bits.
constexpr int kCounter = 3;
// An average of what slots add to the counter, with zero_debias. Its decay is 0.5, so that its powers are exact.
constexpr int kAverage = 4;
// The index of the first of two constant variables. All gradients depend on both, and only assignments change them.
constexpr int kConstant = 5;
constexpr int kVariables = 7;
// The state of kAverage, which workers do not get.
constexpr int kBiased = 7;
constexpr int kLocalStep = 8;
constexpr int kValues = 9;
// The second variable and the first constant are too large to be copied into a message, so they are sent without a
// copy.
constexpr int kElements[kValues] = {5, 140, 2, 2, 2, 130, 1, 2, 1};
constexpr const char* kNames[kValues] = {
    "a", "b", "c", "counter", "average", "fixed", "scale", "average/biased", "average/local_step"};
constexpr float kInitial[kValues] = {0.5f, 0, -0.25f, 0, 4, 0.125f, 1, 0, 0};
constexpr const char* kPowers[] = {"beta1_power", "beta2_power"};
// The size of the configured data, which the workers never read.
constexpr int64_t kExamples = 4096;
// Exceeds the last step of every run.
constexpr int64_t kMaxSteps = 1000;

float Noise(const SlotKey& key, int variable, int element) {
  Random random(key.seed * 1000003 +
                static_cast<uint64_t>(((key.step * 64 + key.slot) * 8 + variable) * 256 + element));
  return static_cast<float>(random.Between(-1000000, 1000000)) * 1e-6f;
}

float GradientAt(const SlotKey& key, VariableValues values, int64_t batch_size, int variable, int element) {
  const float own = values[variable][element];
  const float other = values[(variable + 1) % kTrainable][0];
  const float fixed = values[kConstant][element % kElements[kConstant]] * values[kConstant + 1][0];
  return own * 0.3f - other * 0.1f + fixed * 0.01f + Noise(key, variable, element) * static_cast<float>(batch_size);
}

// Returns the small integer that a slot adds to the counter.
float CountAt(const SlotKey& key, int element) {
  return element == 0 ? 1.0f : static_cast<float>(1 + (key.step * 7 + key.slot * 3) % 50);
}

float LossAt(const SlotKey& key, VariableValues values) { return values[0][0] * values[0][0] + Noise(key, 7, 7); }

class TinyModel : public Model {
 public:
  TinyModel(int64_t batch_size, const RunRules& rules, ComputeHooks hooks)
      : batch_size_(batch_size), rules_(rules), hooks_(std::move(hooks)) {}
  const v1::ModelSpec& spec() const override { return TinyModelSpec(); }
  absl::Status ComputeGradients(VariableValues values, const Batch&, const SlotKey& key, GradientSink* sink) override {
    if (hooks_.before_slot) hooks_.before_slot(key, values);
    const bool finite = key.step != rules_.non_finite_step || key.slot != rules_.non_finite_slot;
    const float loss = finite ? LossAt(key, values) : std::numeric_limits<float>::quiet_NaN();
    if (!sink->OnLoss(loss)) return absl::CancelledError("the gradients are no longer wanted");
    if (key.step == rules_.stop_step && key.slot == rules_.stop_slot) sink->RequestStop();
    int32_t counts[2];
    float averaged[2];
    for (int i = 0; i < 2; ++i) {
      averaged[i] = CountAt(key, i);
      counts[i] = static_cast<int32_t>(averaged[i]);
    }
    sink->OnUpdate(0, counts);
    sink->OnUpdate(1, averaged);
    for (int variable = kTrainable - 1; variable >= 0; --variable) {
      if (hooks_.before_gradient) hooks_.before_gradient();
      float* const gradient = sink->GradientBuffer(variable);
      for (int i = 0; i < kElements[variable]; ++i) {
        gradient[i] = GradientAt(key, values, batch_size_, variable, i);
      }
      sink->OnGradient(variable);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  const int64_t batch_size_;
  const RunRules rules_;
  const ComputeHooks hooks_;
};

// A source that provides empty batches for a limited number of slots.
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

bool IsSame(const float* got, const std::vector<float>& wanted) {
  return std::memcmp(got, wanted.data(), wanted.size() * sizeof(float)) == 0;
}

absl::Status Compare(int64_t step, absl::string_view name, const float* got, const std::vector<float>& wanted) {
  if (IsSame(got, wanted)) return absl::OkStatus();
  size_t i = 0;
  while (std::memcmp(&got[i], &wanted[i], sizeof(float)) == 0) ++i;
  return absl::DataLossError(
      absl::StrCat("step ", step, ": ", name, "[", i, "] is ", got[i], ", in the undisturbed run ", wanted[i]));
}

// Returns a float with the bits of an integer.
float FloatOf(int32_t integer) {
  float bits = 0;
  std::memcpy(&bits, &integer, sizeof(bits));
  return bits;
}
int32_t IntegerOf(float bits) {
  int32_t integer = 0;
  std::memcpy(&integer, &bits, sizeof(integer));
  return integer;
}

// Returns the bits of the loss, or the same bits for every NaN.
uint64_t BitsOf(double loss) {
  if (std::isnan(loss)) return ~uint64_t{0};
  uint64_t bits = 0;
  std::memcpy(&bits, &loss, sizeof(bits));
  return bits;
}

}  // namespace

const v1::ModelSpec& TinyModelSpec() {
  static const v1::ModelSpec* const spec = [] {
    auto* model = new v1::ModelSpec;
    for (int i = 0; i < kVariables; ++i) {
      v1::VariableSpec* const variable = model->add_variables();
      variable->set_name(kNames[i]);
      variable->set_dtype(TypeOf(kNames[i]));
      variable->add_shape(kElements[i]);
      variable->set_trainable(i < kTrainable);
      variable->mutable_initializer()->mutable_constant()->set_value(kInitial[i]);
    }
    v1::UpdateOpSpec* const count = model->add_update_ops();
    count->set_variable(kNames[kCounter]);
    count->set_kind(v1::UpdateOpSpec::ASSIGN_ADD);
    v1::UpdateOpSpec* const average = model->add_update_ops();
    average->set_variable(kNames[kAverage]);
    average->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
    average->set_decay(0.5f);
    average->set_zero_debias(true);
    return model;
  }();
  return *spec;
}

bool IsConstant(int64_t variable) { return variable >= kConstant && variable < kVariables; }

std::string RunRules::Describe() const {
  std::string text;
  if (batches >= 0) absl::StrAppend(&text, ", ", batches, " batches");
  if (stop_step >= 0) absl::StrAppend(&text, ", slot ", stop_slot, " of step ", stop_step, " asks for the end");
  if (non_finite_step >= 0)
    absl::StrAppend(&text, ", a loss of step ", non_finite_step, " is NaN", skips_non_finite ? " and skips it" : "");
  if (!followed) return text;
  absl::StrAppend(&text, ", a program follows and takes ", absl::FormatDuration(hook_time));
  if (patience > 0) absl::StrAppend(&text, ", patience ", patience, " at every ", check_every, ". step");
  if (!assign_at.empty()) absl::StrAppend(&text, ", sets variables after ", absl::StrJoin(assign_at, " and "));
  if (assign_every > 0) absl::StrAppend(&text, ", sets variables after every ", assign_every, ". step");
  if (assigns_by_chance) absl::StrAppend(&text, " or not");
  if (!change_at.empty()) absl::StrAppend(&text, ", changes settings after ", absl::StrJoin(change_at, " and "));
  if (change_every > 0) absl::StrAppend(&text, ", changes settings after every ", change_every, ". step");
  if (on_stop == OnStop::kLeaves) absl::StrAppend(&text, ", leaves its loop when it is stopped");
  if (on_stop == OnStop::kRequestsEnd) absl::StrAppend(&text, ", requests the end when it is stopped");
  return text;
}

bool RunRules::AssignsAfter(int64_t step) const {
  return absl::c_linear_search(assign_at, step) || (assign_every > 0 && step % assign_every == 0);
}

bool RunRules::ChangesAfter(int64_t step) const {
  return absl::c_linear_search(change_at, step) || (change_every > 0 && step % change_every == 0);
}

const RunChanges::Settings& RunChanges::SettingsAt(int64_t step) const {
  size_t i = settings.size() - 1;
  while (i > 0 && settings[i].first > step) --i;
  return settings[i].second;
}

RunChanges::Settings SettingsOf(const config::v1::RunSpec& config) {
  return {config.optimizer().learning_rate().initial(), config.input().batch_size()};
}

RunChanges ChangesOf(const config::v1::RunSpec& config) {
  RunChanges changes;
  changes.settings.emplace_back(0, SettingsOf(config));
  return changes;
}

RunChanges ChangesOf(const v1::RunRecord& record) {
  RunChanges changes;
  RunChanges::Settings settings = SettingsOf(record.config());
  for (int i = record.change_size() - 1; i >= 0; --i) {
    const v1::RunRecord::Change& change = record.change(i);
    changes.settings.emplace_back(change.step(), settings);
    if (change.has_before()) settings = SettingsOf(change.before());
    if (change.replaced().has_learning_rate()) settings.rate = change.replaced().learning_rate().initial();
    if (change.replaced().has_batch_size()) settings.batch_size = change.replaced().batch_size();
  }
  changes.settings.emplace_back(0, settings);
  std::reverse(changes.settings.begin(), changes.settings.end());
  for (const v1::RunRecord::Assignment& assignment : record.assignment()) {
    changes.assignments.push_back(
        {assignment.step(), std::vector<std::string>(assignment.variable().begin(), assignment.variable().end())});
  }
  return changes;
}

Workload NewTinyWorkload(const config::v1::RunSpec& config, const RunRules& rules, ComputeHooks hooks) {
  Workload workload;
  workload.batches = std::make_unique<CountedBatches>(config.training().replicas_to_aggregate(), rules.batches);
  workload.model = std::make_unique<TinyModel>(config.input().batch_size(), rules, std::move(hooks));
  workload.data.emplace();
  workload.data->set_examples(kExamples);
  return workload;
}

v1::DataType TypeOf(absl::string_view name) { return name == kNames[kCounter] ? v1::DT_INT32 : v1::DT_FLOAT; }

std::vector<float> AssignedValues(const std::string& name) {
  std::vector<float> values;
  for (int v = 0; v < kVariables; ++v) {
    const absl::string_view variable = absl::string_view(name).substr(0, name.find('/'));
    if (variable != kNames[v]) continue;
    for (int i = 0; i < kElements[v]; ++i) {
      values.push_back(v == kCounter ? FloatOf(1000 + i) : static_cast<float>(name.size()) - 0.125f * i);
    }
  }
  return values;
}

std::vector<std::string> StateNames(const config::v1::OptimizerConfig& optimizer) {
  if (optimizer.has_adam()) return {"/Adam", "/Adam_1"};
  return {"/Momentum"};
}

void SeenUpdates::See(const v1::StepCommit& commit) {
  step = commit.step();
  losses = (losses ^ BitsOf(commit.mean_loss())) * 0x100000001b3 + static_cast<uint64_t>(commit.step());
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
    : config_(config), rules_(rules), changes_(std::move(changes)), state_names_(StateNames(config.optimizer())) {
  State first = First();
  Assign(0, &first);
  states_.push_back(std::make_shared<const State>(std::move(first)));
  const ParameterLayout layout = ParameterLayout::Create(TinyModelSpec()).value();
  for (const auto& variable : layout.variables()) {
    canary_.emplace_back(variable.elements);  // zeros of any type
    if (variable.spec.dtype() != v1::DT_FLOAT) continue;
    FillCanaryValues(config_.training().seed(), variable, /*offset=*/0, absl::MakeSpan(canary_.back()));
  }
}

Reference::State Reference::First() const {
  State first;
  for (int i = 0; i < kValues; ++i) first.values.emplace_back(kElements[i], kInitial[i]);
  first.slots.resize(state_names_.size());
  for (Values& slot : first.slots) {
    for (int i = 0; i < kTrainable; ++i) slot.emplace_back(kElements[i], 0.0f);
  }
  first.powers[0] = config_.optimizer().adam().beta1();
  first.powers[1] = config_.optimizer().adam().beta2();
  return first;
}

Reference::Reference(const Reference& base, RunChanges changes)
    : config_(base.config_),
      rules_(base.rules_),
      changes_(std::move(changes)),
      state_names_(base.state_names_),
      states_(base.states_),
      canary_(base.canary_) {
  // The last step at which both runs have the same state. An assignment at s changes the state of s, and settings at s
  // change the state of s + 1.
  int64_t same = kMaxSteps;
  const auto &ours = changes_.assignments, &theirs = base.changes_.assignments;
  const auto at = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (at.first != ours.end()) same = std::min(same, at.first->step - 1);
  if (at.second != theirs.end()) same = std::min(same, at.second->step - 1);
  const auto &own = changes_.settings, &other = base.changes_.settings;
  const auto from = std::mismatch(own.begin(), own.end(), other.begin(), other.end());
  if (from.first != own.end()) same = std::min(same, from.first->first);
  if (from.second != other.end()) same = std::min(same, from.second->first);
  if (same < 0) {
    states_ = Reference(config_, rules_, changes_).states_;
  } else if (static_cast<int64_t>(states_.size()) > same + 1) {
    states_.resize(static_cast<size_t>(same + 1));
  }
}

const Reference::State& Reference::At(int64_t step) const {
  while (static_cast<int64_t>(states_.size()) <= step) {
    const auto made = static_cast<int64_t>(states_.size());
    State next = Next(*states_.back(), made - 1);
    v1::StepCommit commit;
    commit.set_step(made);
    commit.set_mean_loss(next.mean_loss);
    next.seen.See(commit);
    Assign(made, &next);
    states_.push_back(std::make_shared<const State>(std::move(next)));
  }
  return *states_[static_cast<size_t>(step)];
}

void Reference::Assign(int64_t step, State* state) const {
  for (const RunChanges::Assignment& assignment : changes_.assignments) {
    if (assignment.step != step) continue;
    for (const std::string& name : assignment.variables) {
      for (int v = 0; v < kValues; ++v) {
        if (name == kNames[v]) state->values[v] = AssignedValues(name);
        for (size_t k = 0; k < state_names_.size() && v < kTrainable; ++k) {
          if (name == absl::StrCat(kNames[v], state_names_[k])) state->slots[k][v] = AssignedValues(name);
        }
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
  if (rules_.non_finite_step >= 0 && !rules_.skips_non_finite) last = std::min(last, rules_.non_finite_step);
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
  const RunChanges::Settings& settings = changes_.SettingsAt(step);
  std::vector<Gradient> gradients;
  std::vector<const Gradient*> added;
  for (int64_t slot = 0; slot < config_.training().replicas_to_aggregate(); ++slot) {
    gradients.push_back(Compute({{config_.training().seed(), step, slot}, &state}, settings));
  }
  for (const Gradient& gradient : gradients) added.push_back(&gradient);
  State next = After(state, settings, added);
  if (!rules_.skips_non_finite || step != rules_.non_finite_step) return next;
  State skipped = state;
  skipped.mean_loss = std::numeric_limits<double>::quiet_NaN();
  return skipped;
}

Reference::Gradient Reference::Compute(const Contribution& contribution, const RunChanges::Settings& settings) const {
  std::vector<const float*> values;
  for (const auto& variable : contribution.base->values) values.push_back(variable.data());
  Gradient gradient;
  for (int v = 0; v < kTrainable; ++v) {
    std::vector<float>& elements = gradient.values.emplace_back();
    for (int i = 0; i < kElements[v]; ++i) {
      elements.push_back(GradientAt(contribution.key, values, settings.batch_size, v, i));
    }
  }
  gradient.loss = LossAt(contribution.key, values);
  for (int i = 0; i < kElements[kCounter]; ++i) gradient.counts.push_back(CountAt(contribution.key, i));
  return gradient;
}

Reference::State Reference::After(const State& state, const RunChanges::Settings& settings,
                                  absl::Span<const Gradient* const> gradients) const {
  State next = state;
  std::vector<float> sums(gradients.size());
  for (int v = 0; v < kTrainable; ++v) {
    for (int i = 0; i < kElements[v]; ++i) {
      // ((g0+g1)+(g2+g3))+...: adds neighbors until one sum is left.
      for (size_t j = 0; j < gradients.size(); ++j) sums[j] = gradients[j]->values[v][i];
      for (size_t left = gradients.size(); left > 1; left = (left + 1) / 2) {
        for (size_t j = 0; j < left; j += 2) sums[j / 2] = j + 1 < left ? sums[j] + sums[j + 1] : sums[j];
      }
      Update(state, settings.rate, sums[0] / static_cast<float>(gradients.size()), v, i, &next);
    }
  }
  next.powers[0] *= config_.optimizer().adam().beta1();
  next.powers[1] *= config_.optimizer().adam().beta2();
  next.mean_loss = 0;
  for (const Gradient* const gradient : gradients) {
    next.mean_loss += gradient->loss;
    for (int i = 0; i < kElements[kCounter]; ++i) {
      float& counter = next.values[kCounter][i];
      counter = FloatOf(IntegerOf(counter) + static_cast<int32_t>(gradient->counts[i]));
    }
    AddToAverage(*gradient, &next);
  }
  next.mean_loss /= static_cast<double>(gradients.size());
  return next;
}

void Reference::AddToAverage(const Gradient& gradient, State* next) const {
  float& local_step = next->values[kLocalStep][0];
  local_step += 1;
  const float weight = 1 - std::ldexp(1.0f, -static_cast<int>(local_step));
  for (int i = 0; i < kElements[kAverage]; ++i) {
    float& biased = next->values[kBiased][i];
    biased -= (biased - gradient.counts[i]) * 0.5f;
    next->values[kAverage][i] = biased / weight;
  }
}

void Reference::Update(const State& state, float rate, float gradient, int variable, int element, State* next) const {
  const auto now = [&](size_t k) { return state.slots[k][variable][element]; };
  const auto then = [&](size_t k) -> float& { return next->slots[k][variable][element]; };
  const float value = state.values[variable][element];
  if (config_.optimizer().has_adam()) {
    const config::v1::OptimizerConfig::Adam& adam = config_.optimizer().adam();
    const float alpha = rate * std::sqrt(1.0f - state.powers[1]) / (1.0f - state.powers[0]);
    then(0) = now(0) + (gradient - now(0)) * (1.0f - adam.beta1());
    then(1) = now(1) + (gradient * gradient - now(1)) * (1.0f - adam.beta2());
    next->values[variable][element] = value - then(0) * alpha / (std::sqrt(then(1)) + adam.epsilon());
  } else {
    then(0) = now(0) * config_.optimizer().momentum().momentum() + gradient;
    next->values[variable][element] = value - then(0) * rate;
  }
}

absl::Status Reference::CheckValues(int64_t step, VariableValues values) const {
  if (step < 0 || step > kMaxSteps) return absl::OutOfRangeError(absl::StrCat("step ", step));
  return CheckValues(At(step), step, values);
}

absl::Status Reference::CheckValues(const State& state, int64_t step, VariableValues values) const {
  for (int v = 0; v < kVariables; ++v) {
    RETURN_IF_ERROR(Compare(step, kNames[v], values[v], state.values[v]));
  }
  return absl::OkStatus();
}

absl::Status Reference::CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) const {
  if (step < 0 || step > kMaxSteps) return absl::OutOfRangeError(absl::StrCat("step ", step));
  return CheckNamed(At(step), step, values);
}

absl::Status Reference::CheckNamed(const State& state, int64_t step,
                                   absl::Span<const train::NamedTensor> values) const {
  for (const train::NamedTensor& named : values) {
    if (named.name == "global_step" && named.value.flat<int64_t>()[0] != step) {
      return absl::DataLossError(absl::StrCat("global_step is ", named.value.flat<int64_t>()[0], " at step ", step));
    }
    for (size_t i = 0; i < 2; ++i) {
      if (named.name != kPowers[i] || named.value.flat<float>()[0] == state.powers[i]) continue;
      return absl::DataLossError(absl::StrCat(named.name, " is ", named.value.flat<float>()[0], " at step ", step,
                                              ", in the undisturbed run ", state.powers[i]));
    }
    const size_t slash = named.name.find('/');
    for (int v = kVariables; v < kValues; ++v) {
      if (named.name != kNames[v]) continue;
      RETURN_IF_ERROR(Compare(step, named.name, named.value.flat<float>().data(), state.values[v]));
    }
    for (int v = 0; v < kVariables; ++v) {
      if (absl::string_view(named.name).substr(0, slash) != kNames[v]) continue;
      const Values* wanted = slash == std::string::npos ? &state.values : nullptr;
      for (size_t k = 0; k < state_names_.size() && wanted == nullptr; ++k) {
        if (named.name.substr(slash) == state_names_[k]) wanted = &state.slots[k];
      }
      if (wanted != nullptr) RETURN_IF_ERROR(Compare(step, named.name, named.value.flat<float>().data(), (*wanted)[v]));
    }
  }
  return absl::OkStatus();
}

bool Reference::AreCanaryValues(VariableValues values) const {
  for (int v = 0; v < kVariables; ++v) {
    if (!IsSame(values[v], canary_[v])) return false;
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
    if (commit.step() == seen && BitsOf(commit.mean_loss()) == BitsOf(At(seen).mean_loss)) continue;
    return absl::DataLossError(absl::StrCat("the update to step ", commit.step(), " is kept with loss ",
                                            commit.mean_loss(), " as that to ", seen, " with ", At(seen).mean_loss));
  }
  if (seen == step) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the hooks have seen ", state.step(), ", and ", state.unseen_size(), " updates are kept for them"));
}

absl::StatusOr<std::vector<train::NamedTensor>> Reference::ReadNamed(const BundleReader& reader) const {
  RETURN_IF_ERROR(reader.Verify());
  std::vector<train::NamedTensor> values;
  for (int v = -1; v < kValues; ++v) {
    const std::string name = v < 0 ? "global_step" : kNames[v];
    ASSIGN_OR_RETURN(Tensor value, reader.Read(name));
    values.push_back({name, std::move(value)});
    if (v < 0 || v >= kTrainable) continue;
    for (const std::string& state : state_names_) {
      ASSIGN_OR_RETURN(Tensor slot, reader.Read(absl::StrCat(name, state)));
      values.push_back({absl::StrCat(name, state), std::move(slot)});
    }
  }
  for (size_t i = 0; i < 2 && config_.optimizer().has_adam(); ++i) {
    ASSIGN_OR_RETURN(Tensor power, reader.Read(kPowers[i]));
    values.push_back({kPowers[i], std::move(power)});
  }
  return values;
}

absl::Status Reference::CheckCheckpoint(const BundleReader& reader) const {
  ASSIGN_OR_RETURN(const std::vector<train::NamedTensor> values, ReadNamed(reader));
  const int64_t step = values[0].value.flat<int64_t>()[0];
  RETURN_IF_ERROR(CheckNamed(step, values));
  ASSIGN_OR_RETURN(const v1::SessionState state, SessionStateOf(reader));
  return CheckSessionState(step, state);
}

}  // namespace simulation
}  // namespace lockstep
