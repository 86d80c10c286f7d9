#include "server/ps/variable_store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "common/tensor/rounding.h"
#include "common/tensor/shape.h"
#include "common/tensor/sparse_differences.h"
#include "glog/logging.h"
#include "server/ps/checkpoint_keys.h"
#include "server/ps/initializer.h"

namespace lockstep {
namespace {

// Two versions are alive in the usual case, a third of the values while slow readers hold an old one, and of all while
// a snapshot is written: clearing fresh memory in the update after each would cost training more than the save.
constexpr size_t kSpareVersions = 2;
// For each segment, beside the one that lies in the next values: contributions that arrive in order need no more
// partial sums for up to eight slots.
constexpr size_t kSpareSums = 2;

Shape ShapeOf(const VariableSpec& spec) {
  return *Shape::Create(std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
}

absl::string_view BytesOf(const AlignedBuffer& flat, const ParameterLayout::Variable& variable) {
  return {reinterpret_cast<const char*>(flat.as<float>() + variable.flat_offset),
          static_cast<size_t>(variable.elements) * sizeof(float)};
}

void Fold(const UpdateOpSpec& op, absl::Span<const float> value, float* variable) {
  for (size_t i = 0; i < value.size(); ++i) {
    switch (op.kind()) {
      case UpdateOpSpec::ASSIGN:
        variable[i] = value[i];
        break;
      case UpdateOpSpec::ASSIGN_ADD:
        variable[i] += value[i];
        break;
      default:  // MOVING_AVERAGE; ParameterLayout::Create admits no other
        variable[i] -= (variable[i] - value[i]) * (1 - op.decay());
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<VariableStore>> VariableStore::Create(const ModelSpec& model,
                                                                     const OptimizerConfig& optimizer,
                                                                     const Compression& compression,
                                                                     int64_t replicas_to_aggregate, bool share_values) {
  ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
  for (const auto& variable : layout.variables()) {
    const absl::Status status = ValidateInitializer(variable.spec.initializer());
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("variable ", variable.spec.name(), ": ", status.message()));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> rule, Optimizer::Create(optimizer));
  RETURN_IF_ERROR(CheckCheckpointKeys(layout, *rule, compression.top_k > 0 ? replicas_to_aggregate : 0));
  return std::unique_ptr<VariableStore>(
      new VariableStore(std::move(layout), std::move(rule), compression, replicas_to_aggregate, share_values));
}

VariableStore::VariableStore(ParameterLayout layout, std::unique_ptr<Optimizer> optimizer,
                             const Compression& compression, int64_t replicas_to_aggregate, bool share_values)
    : layout_(std::make_shared<ParameterLayout>(std::move(layout))),
      optimizer_(std::move(optimizer)),
      compression_(compression),
      replicas_to_aggregate_(replicas_to_aggregate),
      num_estimates_(compression.top_k > 0 ? replicas_to_aggregate : 0),
      pool_(static_cast<size_t>(layout_->flat_elements()) * sizeof(float), kSpareVersions, share_values),
      slot_pool_(static_cast<size_t>(layout_->flat_elements()) * sizeof(float),
                 kSpareVersions * optimizer_->slots().size()),
      encoded_pool_(static_cast<size_t>(layout_->flat_elements()) * sizeof(uint16_t), kSpareVersions),
      estimate_pool_(static_cast<size_t>(layout_->flat_elements()) * sizeof(float),
                     static_cast<size_t>(num_estimates_)),
      segment_pool_(ParameterLayout::kSegmentElements * sizeof(float), kSpareSums * layout_->segments().size()) {}

uint64_t VariableStore::MemoryNeeded(bool saves) const {
  const uint64_t versions = saves ? 3 : 2;
  const uint64_t arrays = 1 + optimizer_->slots().size() + static_cast<uint64_t>(num_estimates_);
  uint64_t bytes = versions * arrays * sizeof(float);
  if (compression_.values != DT_FLOAT) bytes += versions * sizeof(uint16_t);
  // In order, contributions need a partial sum for each level of the tree of slots, and the first lies in the next
  // values.
  size_t sums = 0;
  for (int64_t slots = 2; slots < replicas_to_aggregate_ && sums < kSpareSums; slots *= 2) ++sums;
  uint64_t needed = 0;
  const bool too_many =
      __builtin_mul_overflow(static_cast<uint64_t>(layout_->flat_elements()), bytes + sums * sizeof(float), &needed);
  return too_many ? std::numeric_limits<uint64_t>::max() : needed;
}

absl::Status VariableStore::CheckMemory(bool saves, const MemoryLimit& limit) const {
  const uint64_t needed = MemoryNeeded(saves);
  if (needed <= limit.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the model's variables, optimizer state and sums need ", needed,
                                                   " bytes of memory, ", limit.source, " has ", limit.bytes));
}

std::shared_ptr<const PublishedValues> VariableStore::Publish(std::shared_ptr<const AlignedBuffer> flat,
                                                              std::shared_ptr<AlignedBuffer>* encoded) {
  if (compression_.values != DT_FLOAT) *encoded = encoded_pool_.Get();
  auto published = std::make_shared<PublishedValues>();
  published->flat = std::move(flat);
  published->encoded = *encoded;
  published->type = compression_.values;
  return published;
}

void VariableStore::PublishAll() {
  std::shared_ptr<AlignedBuffer> encoded;
  published_ = Publish(values_, &encoded);
  if (encoded == nullptr) return;
  for (const auto& variable : layout_->variables()) {
    if (!variable.spec.trainable()) continue;
    Encode16(compression_.values, variable.elements, values_->as<float>() + variable.flat_offset,
             encoded->as<uint16_t>() + variable.flat_offset);
  }
}

void VariableStore::Clear() {
  step_ = 0;
  values_ = pool_.Get();
  std::memset(values_->data(), 0, values_->size());
  slots_.clear();
  for (const auto& slot : optimizer_->slots()) {
    slots_.push_back(slot_pool_.Get());
    std::fill_n(slots_.back()->as<float>(), layout_->flat_elements(), slot.initial_value);
  }
  auto estimates = std::make_shared<Estimates>();
  for (int64_t slot = 0; slot < num_estimates_; ++slot) {
    const auto zeros = estimate_pool_.Get();
    std::memset(zeros->data(), 0, zeros->size());
    estimates->push_back(zeros);
  }
  estimates_ = std::move(estimates);
}

void VariableStore::Initialize(uint64_t seed) {
  Clear();
  for (const auto& variable : layout_->variables()) {
    InitializeVariable(variable.spec, seed,
                       absl::MakeSpan(values_->as<float>() + variable.flat_offset, variable.elements));
  }
  PublishAll();
}

absl::Status VariableStore::ReadVariable(const BundleReader& reader, const std::string& key,
                                         const ParameterLayout::Variable& variable, AlignedBuffer* flat) const {
  ASSIGN_OR_RETURN(const BundleReader::Entry entry, reader.Describe(key));
  const Shape shape = ShapeOf(variable.spec);
  if (entry.dtype != DT_FLOAT || entry.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": ", key, " is ",
                                                   NameOf(entry.dtype), entry.shape.ToString(),
                                                   ", the model declares float32", shape.ToString()));
  }
  return reader.ReadInto(key, absl::MakeSpan(reinterpret_cast<char*>(flat->as<float>() + variable.flat_offset),
                                             static_cast<size_t>(variable.elements) * sizeof(float)));
}

absl::Status VariableStore::RestoreSlots(const BundleReader& reader,
                                         std::vector<std::shared_ptr<AlignedBuffer>>* slots) const {
  for (size_t k = 0; k < slots->size(); ++k) {
    for (const auto& variable : layout_->variables()) {
      if (!variable.spec.trainable()) continue;
      RETURN_IF_ERROR(ReadVariable(reader, OptimizerSlotKey(variable.spec.name(), optimizer_->slots()[k].name),
                                   variable, (*slots)[k].get()));
    }
  }
  return absl::OkStatus();
}

absl::Status VariableStore::RestoreEstimates(const BundleReader& reader) {
  auto estimates = std::make_shared<Estimates>();
  for (int64_t slot = 0; slot < num_estimates_; ++slot) {
    const auto estimate = estimate_pool_.Get();
    for (const auto& variable : layout_->variables()) {
      if (!variable.spec.trainable()) continue;
      RETURN_IF_ERROR(ReadVariable(reader, GradientEstimateKey(variable.spec.name(), slot), variable, estimate.get()));
    }
    estimates->push_back(estimate);
  }
  estimates_ = std::move(estimates);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OptimizerScalar>> VariableStore::RestoreScalars(const BundleReader& reader) const {
  std::vector<OptimizerScalar> scalars = optimizer_->scalars();
  for (OptimizerScalar& scalar : scalars) {
    ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(scalar.name));
    if (tensor.dtype() != DT_FLOAT || tensor.num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": ", scalar.name, " is ",
                                                     NameOf(tensor.dtype()), tensor.shape().ToString(),
                                                     ", expected a float32 scalar"));
    }
    scalar.value = tensor.flat<float>()[0];
  }
  return scalars;
}

absl::Status VariableStore::Restore(const BundleReader& reader) {
  ASSIGN_OR_RETURN(const Tensor global_step, reader.Read(kGlobalStepKey));
  if (global_step.dtype() != DT_INT64 || global_step.num_elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": global_step is ",
                                                   NameOf(global_step.dtype()), global_step.shape().ToString(),
                                                   ", expected an int64 scalar"));
  }
  const int64_t step = global_step.flat<int64_t>()[0];
  if (step < 0) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": global_step is ", step));
  }
  Clear();
  for (const auto& variable : layout_->variables()) {
    RETURN_IF_ERROR(ReadVariable(reader, variable.spec.name(), variable, values_.get()));
  }
  RETURN_IF_ERROR(RestoreSlots(reader, &slots_));
  RETURN_IF_ERROR(RestoreEstimates(reader));
  ASSIGN_OR_RETURN(const std::vector<OptimizerScalar> scalars, RestoreScalars(reader));
  optimizer_->RestoreScalars(scalars);
  step_ = step;
  PublishAll();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> VariableStore::WarmStart(const BundleReader& reader) {
  std::vector<std::string> missing;
  for (const auto& variable : layout_->variables()) {
    if (!reader.Contains(variable.spec.name())) {
      missing.push_back(variable.spec.name());
      continue;
    }
    RETURN_IF_ERROR(ReadVariable(reader, variable.spec.name(), variable, values_.get()));
  }
  PublishAll();
  return missing;
}

void VariableStore::BeginUpdate(float learning_rate) {
  CHECK(next_values_ == nullptr) << "an update is in progress";
  optimizer_->BeginStep(learning_rate);
  next_values_ = pool_.Get();
  next_published_ = Publish(next_values_, &next_encoded_);
  for (size_t k = 0; k < slots_.size(); ++k) next_slots_.push_back(slot_pool_.Get());
  for (int64_t slot = 0; slot < num_estimates_; ++slot) next_estimates_.push_back(estimate_pool_.Get());
}

float* VariableStore::NextValues(int segment) {
  return next_values_->as<float>() + layout_->segments()[segment].flat_offset;
}

void VariableStore::ApplySegment(int segment, const float* sum, float divisor) {
  const ParameterLayout::Segment& place = layout_->segments()[segment];
  absl::InlinedVector<const float*, 3> slots_in;
  absl::InlinedVector<float*, 3> slots_out;
  for (size_t k = 0; k < slots_.size(); ++k) {
    slots_in.push_back(slots_[k]->as<float>() + place.flat_offset);
    slots_out.push_back(next_slots_[k]->as<float>() + place.flat_offset);
  }
  optimizer_->Apply(place.elements, sum, divisor, values_->as<float>() + place.flat_offset, NextValues(segment),
                    slots_in, absl::MakeConstSpan(slots_out));
  if (next_encoded_ != nullptr) {
    Encode16(compression_.values, place.elements, NextValues(segment),
             next_encoded_->as<uint16_t>() + place.flat_offset);
  }
}

const float* VariableStore::AddToEstimate(int segment, int64_t slot, absl::string_view differences) {
  const ParameterLayout::Segment& place = layout_->segments()[segment];
  float* const next = next_estimates_[slot]->as<float>() + place.flat_offset;
  std::memcpy(next, (*estimates_)[slot]->as<float>() + place.flat_offset,
              static_cast<size_t>(place.elements) * sizeof(float));
  AddDifferences(differences, next);
  return next;
}

void VariableStore::CommitUpdate(absl::Span<const std::vector<std::vector<float>>> updates) {
  for (const auto& variable : layout_->variables()) {
    if (variable.spec.trainable()) continue;
    std::memcpy(next_values_->as<float>() + variable.flat_offset, values_->as<float>() + variable.flat_offset,
                static_cast<size_t>(variable.elements) * sizeof(float));
  }
  for (const std::vector<std::vector<float>>& slot : updates) {
    for (size_t op = 0; op < layout_->update_ops().size(); ++op) {
      const auto& update_op = layout_->update_ops()[op];
      Fold(update_op.spec, slot[op], next_values_->as<float>() + layout_->variables()[update_op.variable].flat_offset);
    }
  }
  optimizer_->EndStep();
  values_ = std::move(next_values_);
  next_values_ = nullptr;
  published_ = std::move(next_published_);
  next_published_ = nullptr;
  next_encoded_ = nullptr;
  estimates_ = std::make_shared<Estimates>(next_estimates_.begin(), next_estimates_.end());
  next_estimates_.clear();
  slots_ = std::move(next_slots_);
  next_slots_.clear();
  ++step_;
}

void VariableStore::PrepareSnapshots() {
  pool_.Fill();
  slot_pool_.Fill();
  if (compression_.values != DT_FLOAT) encoded_pool_.Fill();
  estimate_pool_.Fill();
}

VariableStore::Snapshot VariableStore::TakeSnapshot() const {
  Snapshot snapshot;
  snapshot.step = step_;
  snapshot.layout = layout_;
  snapshot.values = values_;
  for (size_t k = 0; k < slots_.size(); ++k) {
    snapshot.slot_names.push_back(optimizer_->slots()[k].name);
    snapshot.slots.push_back(slots_[k]);
  }
  snapshot.scalars = optimizer_->scalars();
  snapshot.estimates = estimates_;
  return snapshot;
}

absl::Status WriteSnapshot(const VariableStore::Snapshot& snapshot, BundleWriter* writer) {
  for (const auto& variable : snapshot.layout->variables()) {
    const Shape shape = ShapeOf(variable.spec);
    RETURN_IF_ERROR(writer->Add(variable.spec.name(), DT_FLOAT, shape, BytesOf(*snapshot.values, variable)));
    if (!variable.spec.trainable()) continue;
    for (size_t k = 0; k < snapshot.slots.size(); ++k) {
      RETURN_IF_ERROR(writer->Add(OptimizerSlotKey(variable.spec.name(), snapshot.slot_names[k]), DT_FLOAT, shape,
                                  BytesOf(*snapshot.slots[k], variable)));
    }
    for (size_t slot = 0; slot < snapshot.estimates->size(); ++slot) {
      RETURN_IF_ERROR(writer->Add(GradientEstimateKey(variable.spec.name(), static_cast<int64_t>(slot)), DT_FLOAT,
                                  shape, BytesOf(*(*snapshot.estimates)[slot], variable)));
    }
  }
  for (const OptimizerScalar& scalar : snapshot.scalars) {
    RETURN_IF_ERROR(writer->Add(scalar.name, DT_FLOAT, Shape(),
                                absl::string_view(reinterpret_cast<const char*>(&scalar.value), sizeof(scalar.value))));
  }
  return writer->Add(kGlobalStepKey, DT_INT64, Shape(),
                     absl::string_view(reinterpret_cast<const char*>(&snapshot.step), sizeof(snapshot.step)));
}

}  // namespace lockstep
