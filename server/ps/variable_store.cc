#include "lockstep/server/ps/variable_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/step/partial_sums.h"
#include "lockstep/common/tensor/bools.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/server/ps/initializer.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/server/ps/versions/read_variable.h"
#include "lockstep/server/ps/versions/snapshot_entries.h"

namespace lockstep {
namespace {

// Usually, two versions exist. A third version of the values exists while slow readers hold an old one, and a third
// version of everything exists while a snapshot is written. If unused versions were not kept as spares, each following
// update would have to clear fresh memory, which would slow training down more than the save does.
constexpr size_t kSpareVersions = 2;

// All versions share the constant variables. Setting one of these variables makes a copy, so up to two versions of them
// exist.
constexpr uint64_t kConstantVersions = 2;

// Checks the type and the shape before allocating memory, because a damaged checkpoint may claim any size.
template <typename T>
absl::StatusOr<T> ReadScalar(const BundleReader& reader, absl::string_view key) {
  ASSIGN_OR_RETURN(const BundleReader::Entry entry, reader.Describe(key));
  if (entry.dtype != DataTypeOf<T>::value || entry.shape.num_elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": ", key, " is ",
                                                   NameOf(entry.dtype), entry.shape.ToString(), ", expected ",
                                                   NameOf(DataTypeOf<T>::value), "[]"));
  }
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(key));
  return tensor.flat<T>()[0];
}

}  // namespace

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Create(const v1::ModelSpec& model,
                                                                     const config::v1::OptimizerConfig& optimizer,
                                                                     const Compression& compression,
                                                                     int64_t replicas_to_aggregate, bool share_values,
                                                                     int64_t max_partial_sums) {
  ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
  for (const auto& variable : layout.variables()) RETURN_IF_ERROR(ValidateInitializer(variable.spec));
  ASSIGN_OR_RETURN(std::unique_ptr<OptimizerGroups> optimizers, OptimizerGroups::Create(optimizer, layout));
  RETURN_IF_ERROR(CheckCheckpointKeys(layout, *optimizers, compression.top_k > 0 ? replicas_to_aggregate : 0));
  if (compression.top_k > 0) {
    max_partial_sums = MostPartialSums(replicas_to_aggregate);  // slots arrive in any order
  } else if (max_partial_sums == 0) {
    const uint64_t bytes = static_cast<uint64_t>(layout.trained_elements()) * sizeof(float);
    max_partial_sums = DefaultPartialSums(replicas_to_aggregate, bytes);
  }
  max_partial_sums = std::min(max_partial_sums, MostPartialSums(replicas_to_aggregate));
  return std::unique_ptr<VariableStore>(new VariableStore(std::move(layout), std::move(optimizers), compression,
                                                          replicas_to_aggregate, share_values, max_partial_sums));
}

VariableStore::VariableStore(ParameterLayout layout, std::unique_ptr<OptimizerGroups> optimizers,
                             const Compression& compression, int64_t replicas_to_aggregate, bool share_values,
                             int64_t max_partial_sums)
    : layout_(std::make_shared<ParameterLayout>(std::move(layout))),
      optimizers_(std::move(optimizers)),
      clips_means_(optimizers_->ClipsMeans()),
      compression_(compression),
      max_partial_sums_(max_partial_sums),
      segment_pool_(ParameterLayout::kSegmentElements * sizeof(float),
                    static_cast<size_t>(max_partial_sums - 1) * static_cast<size_t>(layout_->num_trainable_segments())),
      values_(layout_, compression.values, kSpareVersions, share_values),
      optimizer_state_(layout_, optimizers_->StatesOfVariables(), kSpareVersions),
      estimates_(layout_, compression.top_k > 0 ? replicas_to_aggregate : 0),
      norms_(static_cast<int>(layout_->segments().size())) {}

uint64_t VariableStore::gradient_bytes() const {
  int64_t elements = 0;
  for (const ParameterLayout::Variable& variable : layout_->variables()) {
    if (variable.spec.trainable()) elements += variable.elements;
  }
  return static_cast<uint64_t>(elements) * sizeof(float);
}

uint64_t VariableStore::MemoryNeeded(const MemoryUse& use) const {
  const uint64_t versions = 2 + (use.saves ? 1 : 0) + (use.reads ? 1 : 0);
  // Memory per element that changes (value_bytes), and additional memory per trained element (trained_bytes).
  const uint64_t value_bytes = versions * sizeof(float);
  const uint64_t arrays = optimizer_state_.num_arrays() + static_cast<uint64_t>(estimates_.num_slots());
  const auto sums = static_cast<uint64_t>(max_partial_sums_ - 1);  // the first is in the next values' memory
  uint64_t trained_bytes = (versions * arrays + sums) * sizeof(float);
  if (compression_.values != v1::DT_FLOAT) trained_bytes += versions * sizeof(uint16_t);
  const auto brought = use.brought_values ? static_cast<uint64_t>(layout_->flat_elements()) * sizeof(float) : 0;
  uint64_t needed = 0, constant = 0, trained = 0, staged = 0;
  const bool too_many =
      __builtin_mul_overflow(static_cast<uint64_t>(layout_->constants_offset()), value_bytes, &needed) ||
      __builtin_mul_overflow(static_cast<uint64_t>(layout_->constant_elements()), kConstantVersions * sizeof(float),
                             &constant) ||
      __builtin_mul_overflow(static_cast<uint64_t>(layout_->trained_elements()), trained_bytes, &trained) ||
      __builtin_mul_overflow(static_cast<uint64_t>(use.staged_contributions), gradient_bytes(), &staged) ||
      __builtin_add_overflow(needed, constant, &needed) || __builtin_add_overflow(needed, trained, &needed) ||
      __builtin_add_overflow(needed, staged, &needed) || __builtin_add_overflow(needed, brought, &needed);
  return too_many ? std::numeric_limits<uint64_t>::max() : needed;
}

absl::Status VariableStore::CheckMemory(const MemoryUse& use, const MemoryLimit& limit) const {
  const uint64_t model = MemoryNeeded(use);
  if (limit.bytes >= kProcessBytes && model <= limit.bytes - kProcessBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the model's variables, optimizer state and sums",
      use.staged_contributions > 0 ? ", and the contributions that come in," : "", " need ", model,
      " bytes of memory, the rest of the chief ", kProcessBytes, ", ", limit.source, " has ", limit.bytes));
}

void VariableStore::Initialize(uint64_t seed) {
  step_ = 0;
  values_.Renew(/*pool=*/nullptr);
  optimizer_state_.Clear();
  estimates_.Clear();
  for (const auto& variable : layout_->variables()) {
    char* const bytes = reinterpret_cast<char*>(values_.Current(variable.flat_offset));
    InitializeVariable(variable.spec, seed, absl::MakeSpan(bytes, variable.bytes()));
  }
  values_.PublishCurrent();
  StartStateAtValues();
}

void VariableStore::StartStateAtValues() {
  OptimizerStateVersions::Lacking all;
  for (int i = 0; i < static_cast<int>(layout_->variables().size()); ++i) {
    for (size_t k = 0; k < optimizer_state_.states_of(i).size(); ++k) all.push_back({i, k});
  }
  StartStateAtValues(all);
}

void VariableStore::StartStateAtValues(const OptimizerStateVersions::Lacking& states) {
  std::vector<float*> copies(optimizer_state_.num_arrays());
  for (const OptimizerStateVersions::LackingState& lacking : states) {
    if (!optimizer_state_.states_of(lacking.variable)[lacking.state].starts_at_value) continue;
    float*& flat = copies[lacking.state];
    if (flat == nullptr) flat = optimizer_state_.CopyCurrent(lacking.state);
    const ParameterLayout::Variable& variable = layout_->variables()[lacking.variable];
    std::copy_n(values_.Current(variable.flat_offset), variable.elements, flat + variable.flat_offset);
  }
}

absl::StatusOr<std::vector<OptimizerScalar>> VariableStore::RestoreScalars(const BundleReader& reader) const {
  std::vector<OptimizerScalar> scalars = optimizers_->scalars();
  for (OptimizerScalar& scalar : scalars) {
    ASSIGN_OR_RETURN(scalar.value, ReadScalar<float>(reader, scalar.name));
  }
  return scalars;
}

absl::StatusOr<int64_t> VariableStore::RestoreStep(const BundleReader& reader) const {
  ASSIGN_OR_RETURN(const int64_t step, ReadScalar<int64_t>(reader, kGlobalStepKey));
  if (step >= 0) return step;
  return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": global_step is ", step));
}

absl::Status VariableStore::AddPlaces(const BundleReader& reader, ThreadPool* pool,
                                      std::vector<BundleReader::Place>* places,
                                      OptimizerStateVersions::Lacking* lacking) {
  values_.Renew(pool);
  for (const auto& variable : layout_->variables()) {
    ASSIGN_OR_RETURN(BundleReader::Place place,
                     PlaceOf(reader, variable.spec.name(), variable, values_.Current(variable.flat_offset)));
    places->push_back(std::move(place));
  }
  for (const auto& state : layout_->update_state()) {
    ASSIGN_OR_RETURN(BundleReader::Place place,
                     PlaceOf(reader, state.spec.name(), state, values_.Current(state.flat_offset)));
    places->push_back(std::move(place));
  }
  RETURN_IF_ERROR(optimizer_state_.Restore(reader, places, lacking));
  return estimates_.Restore(reader, places, /*may_lack=*/lacking != nullptr);
}

absl::Status VariableStore::Restore(const BundleReader& reader, ThreadPool* pool, bool may_lack_state) {
  std::vector<BundleReader::Place> places;
  OptimizerStateVersions::Lacking lacking;
  const absl::Status planned = AddPlaces(reader, pool, &places, may_lack_state ? &lacking : nullptr);
  // Verifies the whole checkpoint first, so that damage is not reported as a wrong model.
  if (!planned.ok()) places.clear();
  RETURN_IF_ERROR(reader.VerifyInto(places, pool));
  ASSIGN_OR_RETURN(const int64_t step, RestoreStep(reader));
  RETURN_IF_ERROR(planned);
  ASSIGN_OR_RETURN(const std::vector<OptimizerScalar> scalars, RestoreScalars(reader));
  optimizers_->RestoreScalars(scalars);
  StartStateAtValues(lacking);
  step_ = step;
  values_.PublishCurrent();
  return absl::OkStatus();
}

absl::Status VariableStore::WarmStart(const TensorReader& reader, const WarmStartPlan& plan) {
  for (const WarmStartPlan::Load& load : plan.loads) {
    const auto& variable = layout_->variables()[load.variable];
    float* const out = values_.Current(variable.flat_offset);
    if (variable.spec.dtype() != v1::DT_FLOAT) {
      const auto bytes = absl::MakeSpan(reinterpret_cast<char*>(out), variable.bytes());
      RETURN_IF_ERROR(reader.ReadInto(load.key, bytes));
      if (variable.spec.dtype() == v1::DT_BOOL) {
        RETURN_IF_ERROR(CheckBools(reader, load.key, {bytes.data(), bytes.size()}));
      }
      continue;
    }
    const auto elements = absl::MakeSpan(out, variable.elements);
    RETURN_IF_ERROR(ReadLoad(reader, load, elements));
    RETURN_IF_ERROR(CheckFinite(reader, load.key, elements));
  }
  values_.PublishCurrent();
  return absl::OkStatus();
}

absl::StatusOr<VariableStore::Place> VariableStore::FindAssigned(const AssignedValue& value) const {
  Place place;
  for (size_t i = 0; i < layout_->variables().size(); ++i) {
    const ParameterLayout::Variable& variable = layout_->variables()[i];
    if (variable.spec.name() == value.key) place = {&variable, absl::nullopt};
    const auto& states = optimizer_state_.states_of(static_cast<int>(i));
    for (size_t k = 0; k < states.size(); ++k) {
      if (OptimizerStateKey(variable.spec.name(), states[k].name) == value.key) place = {&variable, k};
    }
  }
  for (const ParameterLayout::Variable& state : layout_->update_state()) {
    if (state.spec.name() == value.key) place = {&state, absl::nullopt};
  }
  if (place.variable == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("there is no variable or optimizer state ", value.key));
  }
  const Shape shape = ShapeOf(place.variable->spec);
  const v1::DataType dtype = place.variable->spec.dtype();
  if (value.value.dtype() == dtype && value.value.shape() == shape) return place;
  return absl::InvalidArgumentError(absl::StrCat(value.key, " is ", NameOf(dtype), shape.ToString(), "; the value is ",
                                                 NameOf(value.value.dtype()), value.value.shape().ToString()));
}

absl::Status VariableStore::CheckAssign(absl::Span<const AssignedValue> values) const {
  for (const AssignedValue& value : values) {
    RETURN_IF_ERROR(FindAssigned(value).status());
    if (value.value.dtype() == v1::DT_BOOL && !AreBools(value.value.bytes())) {
      return absl::InvalidArgumentError(absl::StrCat(value.key, " is set to a bool that is neither 0 nor 1"));
    }
    if (value.value.dtype() != v1::DT_FLOAT) continue;
    const absl::Span<const float> elements = value.value.flat<float>();
    const auto found = absl::c_find_if(elements, [](float element) { return !std::isfinite(element); });
    if (found == elements.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("element ", found - elements.begin(), " of ", value.key, " is set to ", *found,
                     "; the run would save what is not finite, and could not continue from it"));
  }
  return absl::OkStatus();
}

absl::Status VariableStore::Assign(absl::Span<const AssignedValue> values) {
  RETURN_IF_ERROR(CheckAssign(values));
  std::vector<Place> places;
  for (const AssignedValue& value : values) {
    ASSIGN_OR_RETURN(Place place, FindAssigned(value));
    places.push_back(std::move(place));
  }
  bool sets_values = false;
  std::vector<int> constants;
  for (const Place& place : places) {
    if (place.state) continue;
    const bool constant = place.variable->constant;
    if (constant) constants.push_back(static_cast<int>(place.variable - layout_->variables().data()));
    sets_values |= !constant;
  }
  if (sets_values) values_.CopyCurrent();
  if (!constants.empty()) values_.CopyConstants(constants);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = places[i].variable->flat_offset;
    float* const out = places[i].state ? optimizer_state_.CopyCurrent(*places[i].state) + at : values_.Current(at);
    const absl::string_view bytes = values[i].value.bytes();
    std::memcpy(out, bytes.data(), bytes.size());
  }
  values_.PublishCurrent();
  return absl::OkStatus();
}

absl::Status VariableStore::SetOptimizer(const config::v1::OptimizerConfig& optimizer) {
  ASSIGN_OR_RETURN(std::unique_ptr<OptimizerGroups> optimizers, OptimizerGroups::Create(optimizer, *layout_));
  RETURN_IF_ERROR(CheckSameState(*optimizers_, *optimizers));
  optimizers->RestoreScalars(optimizers_->scalars());
  optimizers_ = std::move(optimizers);
  clips_means_ = optimizers_->ClipsMeans();
  return absl::OkStatus();
}

void VariableStore::BeginUpdate(Norms norms) {
  values_.BeginUpdate();
  optimizer_state_.BeginUpdate();
  estimates_.BeginUpdate();
  optimizers_->BeginStep(step_);
  wants_norms_ = norms == Norms::kGathered;
  norms_.Begin(wants_norms_ || holds_segments());
}

float* VariableStore::NextValues(int segment) { return values_.Next(layout_->segments()[segment].flat_offset); }

void VariableStore::ApplySegment(int segment, const float* sum, float divisor) {
  const ParameterLayout::Segment& place = layout_->segments()[segment];
  const auto state_in = optimizer_state_.Current(place);
  const auto state_out = optimizer_state_.Next(place);
  const float* const before = values_.Current(place.flat_offset);
  float* const after = values_.Next(place.flat_offset);
  // Must precede Apply, whose new values may overwrite the sum.
  if (wants_norms_ && !holds_segments()) norms_.AddGradient(segment, place.elements, sum, divisor);
  optimizers_->RuleOf(place.variable).Apply(place.elements, sum, divisor, before, after, state_in, state_out);
  if (wants_norms_) norms_.AddChange(segment, place.elements, before, after);
  values_.EncodeNext(place);
}

void VariableStore::HoldSegment(int segment, const float* sum, float divisor) {
  const int64_t elements = layout_->segments()[segment].elements;
  float* const home = NextValues(segment);
  if (sum != home) std::copy_n(sum, elements, home);
  norms_.AddGradient(segment, elements, home, divisor);
}

void VariableStore::ApplyHeld(float divisor) {
  const auto clip_group = [this](const ParameterLayout::Segment& segment) {
    return optimizers_->ClipGroupOf(optimizers_->GroupOf(segment.variable));
  };
  const auto& segments = layout_->segments();
  const auto is_trained = [&](size_t i) { return layout_->variables()[segments[i].variable].spec.trainable(); };
  std::vector<double> squares(optimizers_->size());
  for (size_t i = 0; i < segments.size(); ++i) {
    if (is_trained(i)) squares[clip_group(segments[i])] += norms_.GradientSquares(static_cast<int>(i));
  }
  std::vector<float> divisors(optimizers_->size(), divisor);
  for (size_t group = 0; group < squares.size(); ++group) {
    const double norm = std::sqrt(squares[group]), limit = optimizers_->MeanLimit(group);
    if (limit > 0 && norm > limit) divisors[group] = static_cast<float>(divisor * (norm / limit));
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    const int segment = static_cast<int>(i);
    if (is_trained(i)) ApplySegment(segment, NextValues(segment), divisors[clip_group(segments[i])]);
  }
}

const float* VariableStore::AddToEstimate(int segment, int64_t slot, absl::string_view differences) {
  return estimates_.AddToEstimate(layout_->segments()[segment], slot, differences);
}

absl::optional<UpdateNorms> VariableStore::CommitUpdate(absl::Span<const std::vector<std::vector<float>>> updates) {
  values_.FoldUpdates(updates);
  optimizers_->EndStep();
  values_.Commit();
  estimates_.Commit();
  optimizer_state_.Commit();
  ++step_;
  return wants_norms_ ? absl::make_optional(norms_.Total()) : absl::nullopt;
}

void VariableStore::SkipUpdate() {
  DropUpdate();
  ++step_;
}

void VariableStore::DropUpdate() {
  values_.DropUpdate();
  estimates_.DropUpdate();
  optimizer_state_.DropUpdate();
}

BufferPool::Buffers VariableStore::PrepareSnapshots() {
  BufferPool::Buffers taken;
  values_.TakeSpare(&taken);
  optimizer_state_.TakeSpare(&taken);
  estimates_.TakeSpare(&taken);
  return taken;
}

VariableStore::Snapshot VariableStore::TakeSnapshot() const {
  Snapshot snapshot;
  snapshot.step = step_;
  snapshot.layout = layout_;
  snapshot.values = values_.current();
  snapshot.constants = values_.constants()->flat;
  optimizer_state_.AddTo(&snapshot);
  snapshot.scalars = optimizers_->scalars();
  snapshot.estimates = estimates_.current();
  return snapshot;
}

absl::Status WriteSnapshot(const VariableStore::Snapshot& snapshot, BundleWriter* writer) {
  for (const SnapshotEntry& entry : EntriesOf(snapshot)) {
    RETURN_IF_ERROR(writer->Add(entry.key, entry.dtype, entry.shape, BytesOf(snapshot, entry)));
  }
  if (!snapshot.session_state.empty()) {
    const auto bytes = static_cast<int64_t>(snapshot.session_state.size());
    RETURN_IF_ERROR(writer->Add(kSessionStateKey, v1::DT_UINT8, Shape({bytes}), snapshot.session_state));
  }
  if (!snapshot.stream_positions.empty()) {
    const std::vector<int64_t>& positions = snapshot.stream_positions;
    const absl::string_view bytes(reinterpret_cast<const char*>(positions.data()), positions.size() * sizeof(int64_t));
    RETURN_IF_ERROR(
        writer->Add(kStreamPositionsKey, v1::DT_INT64, Shape({static_cast<int64_t>(positions.size())}), bytes));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
