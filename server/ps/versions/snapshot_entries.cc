#include "lockstep/server/ps/versions/snapshot_entries.h"

#include <utility>

#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/server/ps/versions/read_variable.h"

namespace lockstep {
namespace {

using Source = SnapshotEntry::Source;

SnapshotEntry EntryOf(std::string key, const ParameterLayout::Variable& variable, Source source, size_t index) {
  SnapshotEntry entry;
  entry.key = std::move(key);
  entry.dtype = variable.spec.dtype();
  entry.shape = ShapeOf(variable.spec);
  entry.bytes = variable.bytes();
  entry.source = source;
  entry.index = index;
  entry.flat_offset = variable.flat_offset;
  return entry;
}

SnapshotEntry ScalarOf(std::string key, v1::DataType dtype, Source source, size_t index) {
  SnapshotEntry entry;
  entry.key = std::move(key);
  entry.dtype = dtype;
  entry.bytes = SizeOf(dtype);
  entry.source = source;
  entry.index = index;
  return entry;
}

template <typename T>
absl::string_view BytesOfNumber(const T& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

absl::string_view BytesOfArray(const AlignedBuffer& flat, const SnapshotEntry& entry) {
  return {reinterpret_cast<const char*>(flat.as<float>() + entry.flat_offset), entry.bytes};
}

}  // namespace

std::vector<SnapshotEntry> EntriesOf(const VariableSnapshot& snapshot) {
  std::vector<SnapshotEntry> entries;
  for (size_t i = 0; i < snapshot.layout->variables().size(); ++i) {
    const ParameterLayout::Variable& variable = snapshot.layout->variables()[i];
    const std::vector<std::string>& state_names = (*snapshot.state_names)[i];
    const std::string& name = variable.spec.name();
    entries.push_back(EntryOf(name, variable, variable.constant ? Source::kConstants : Source::kValues, 0));
    if (variable.constant) entries.back().flat_offset = snapshot.layout->OffsetInConstants(variable.flat_offset);
    if (!variable.spec.trainable()) continue;
    for (size_t k = 0; k < state_names.size(); ++k) {
      entries.push_back(EntryOf(OptimizerStateKey(name, state_names[k]), variable, Source::kOptimizerState, k));
    }
    for (size_t slot = 0; slot < snapshot.estimates->size(); ++slot) {
      entries.push_back(
          EntryOf(GradientEstimateKey(name, static_cast<int64_t>(slot)), variable, Source::kEstimates, slot));
    }
  }
  for (const ParameterLayout::Variable& state : snapshot.layout->update_state()) {
    entries.push_back(EntryOf(state.spec.name(), state, Source::kValues, 0));
  }
  for (size_t i = 0; i < snapshot.scalars.size(); ++i) {
    entries.push_back(ScalarOf(snapshot.scalars[i].name, v1::DT_FLOAT, Source::kScalar, i));
  }
  entries.push_back(ScalarOf(kGlobalStepKey, v1::DT_INT64, Source::kGlobalStep, 0));
  return entries;
}

absl::string_view BytesOf(const VariableSnapshot& snapshot, const SnapshotEntry& entry) {
  switch (entry.source) {
    case Source::kValues:
      return BytesOfArray(*snapshot.values, entry);
    case Source::kConstants:
      return BytesOfArray(*snapshot.constants, entry);
    case Source::kOptimizerState:
      return BytesOfArray(*snapshot.optimizer_state[entry.index], entry);
    case Source::kEstimates:
      return BytesOfArray(*(*snapshot.estimates)[entry.index], entry);
    case Source::kScalar:
      return BytesOfNumber(snapshot.scalars[entry.index].value);
    case Source::kGlobalStep:
      return BytesOfNumber(snapshot.step);
  }
  return {};
}

}  // namespace lockstep
