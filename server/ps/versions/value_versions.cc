#include "lockstep/server/ps/versions/value_versions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "glog/logging.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/kernels/portable_math.h"

namespace lockstep {
namespace {

// The number of bytes that a thread pre-faults at a time.
constexpr size_t kProvided = 8 * kHugePage;

// Adds integers of this size, in two's complement.
template <typename Unsigned>
void AddIntegers(int64_t n, const void* value, void* variable) {
  for (int64_t i = 0; i < n; ++i) {
    const size_t at = static_cast<size_t>(i) * sizeof(Unsigned);
    Unsigned sum, added;
    std::memcpy(&sum, static_cast<const char*>(variable) + at, sizeof(sum));
    std::memcpy(&added, static_cast<const char*>(value) + at, sizeof(added));
    sum = static_cast<Unsigned>(sum + added);
    std::memcpy(static_cast<char*>(variable) + at, &sum, sizeof(sum));
  }
}

// `value` has the bytes of integers, too.
void FoldIntegers(const v1::UpdateOpSpec& op, const ParameterLayout::Variable& place, const float* value,
                  float* variable) {
  if (op.kind() == v1::UpdateOpSpec::ASSIGN) {
    std::memcpy(variable, value, place.bytes());
  } else if (place.element_bytes == sizeof(uint64_t)) {  // ASSIGN_ADD; ParameterLayout::Create accepts no other
    AddIntegers<uint64_t>(place.elements, value, variable);
  } else if (place.element_bytes == sizeof(uint32_t)) {
    AddIntegers<uint32_t>(place.elements, value, variable);
  } else {
    AddIntegers<uint8_t>(place.elements, value, variable);
  }
}

void Fold(const v1::UpdateOpSpec& op, absl::Span<const float> value, float* variable) {
  for (size_t i = 0; i < value.size(); ++i) {
    switch (op.kind()) {
      case v1::UpdateOpSpec::ASSIGN:
        variable[i] = value[i];
        break;
      case v1::UpdateOpSpec::ASSIGN_ADD:
        variable[i] += value[i];
        break;
      default:  // MOVING_AVERAGE; ParameterLayout::Create accepts no other
        variable[i] -= (variable[i] - value[i]) * (1 - op.decay());
    }
  }
}

// Folds a moving average with zero_debias, in float32 as TensorFlow's assign_moving_average does
// (python/training/moving_averages.py, _zero_debias).
void FoldUnbiased(float decay, absl::Span<const float> value, float* variable, float* biased, float* local_step) {
  const float share = 1 - decay;
  *local_step += 1;
  const float weight = 1 - portable::Pow(1 - share, *local_step);
  for (size_t i = 0; i < value.size(); ++i) {
    biased[i] -= (biased[i] - value[i]) * share;
    variable[i] = biased[i] / weight;
  }
}

// Pre-faults the buffer in huge pages. Otherwise, writes would fault in small pages one by one.
void Provide(AlignedBuffer* buffer, ThreadPool* pool) {
  const size_t pieces = (buffer->size() + kProvided - 1) / kProvided;
  const auto provide = [buffer](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * kProvided;
    buffer->Populate(begin, std::min(kProvided, buffer->size() - begin));
  };
  if (pool != nullptr) {
    pool->ParallelFor(static_cast<int64_t>(pieces), provide);
  } else {
    for (size_t i = 0; i < pieces; ++i) provide(static_cast<int64_t>(i));
  }
}

}  // namespace

FloatChunks PublishedValues::Segment(const ParameterLayout& layout, const ParameterLayout::Segment& segment) const {
  const ParameterLayout::Variable& variable = layout.variables()[segment.variable];
  if (variable.constant) {
    return FloatChunks(variable.spec.dtype(),
                       constants->flat->as<float>() + layout.OffsetInConstants(segment.flat_offset), segment.elements);
  }
  if (encoded == nullptr || !variable.spec.trainable()) {
    return FloatChunks(variable.spec.dtype(), flat->as<float>() + segment.flat_offset, segment.elements);
  }
  return FloatChunks(type, encoded->as<uint16_t>() + segment.flat_offset, segment.elements);
}

ValueVersions::ValueVersions(std::shared_ptr<const ParameterLayout> layout, v1::DataType type, size_t spare_versions,
                             bool shared)
    : layout_(std::move(layout)),
      type_(type),
      pool_(static_cast<size_t>(layout_->constants_offset()) * sizeof(float), spare_versions, shared),
      encoded_pool_(static_cast<size_t>(layout_->trained_elements()) * sizeof(uint16_t), spare_versions),
      constants_pool_(static_cast<size_t>(layout_->constant_elements()) * sizeof(float), /*max_spare=*/0, shared) {}

std::shared_ptr<const PublishedValues> ValueVersions::Publish(std::shared_ptr<const AlignedBuffer> flat,
                                                              std::shared_ptr<AlignedBuffer>* encoded) {
  if (type_ != v1::DT_FLOAT) *encoded = encoded_pool_.Get();
  auto published = std::make_shared<PublishedValues>();
  published->flat = std::move(flat);
  published->constants = constants_;
  published->encoded = *encoded;
  published->type = type_;
  return published;
}

std::shared_ptr<ConstantValues> ValueVersions::NewConstants(std::vector<int64_t> editions) {
  auto constants = std::make_shared<ConstantValues>();
  constants->editions = std::move(editions);
  if (layout_->constant_elements() > 0) constants->flat = constants_pool_.Get();
  return constants;
}

float* ValueVersions::Current(int64_t flat_offset) {
  const int64_t constant = layout_->OffsetInConstants(flat_offset);
  return constant < 0 || constants_->flat == nullptr ? values_->as<float>() + flat_offset
                                                     : constants_->flat->as<float>() + constant;
}

void ValueVersions::Renew(ThreadPool* pool) {
  std::vector<int64_t> editions(layout_->variables().size());
  if (constants_ != nullptr) editions = constants_->editions;
  for (int64_t& edition : editions) ++edition;
  // Releases the old buffers first, so that the pool can reuse them unless another thread holds them.
  published_ = nullptr;
  values_ = nullptr;
  constants_ = nullptr;
  values_ = pool_.Get();
  constants_ = NewConstants(std::move(editions));
  for (AlignedBuffer* const buffer : {values_.get(), constants_->flat.get()}) {
    if (buffer != nullptr && buffer->handle() != nullptr && buffer->size() >= kHugeBuffer) Provide(buffer, pool);
  }
  // Clears the gaps between variables, which no other code writes.
  const auto clear = [this](const ParameterLayout::Variable& variable, size_t from) {
    const size_t end = static_cast<size_t>(ParameterLayout::PaddedFloats(variable.bytes())) * sizeof(float);
    std::memset(reinterpret_cast<char*>(Current(variable.flat_offset)) + from, 0, end - from);
  };
  for (const auto& variable : layout_->variables()) clear(variable, variable.bytes());
  for (const auto& state : layout_->update_state()) clear(state, 0);
}

void ValueVersions::PublishCurrent() {
  std::shared_ptr<AlignedBuffer> encoded;
  published_ = Publish(values_, &encoded);
  if (encoded == nullptr) return;
  for (const auto& variable : layout_->variables()) {
    if (!variable.spec.trainable()) continue;
    Encode16(type_, variable.elements, Current(variable.flat_offset), encoded->as<uint16_t>() + variable.flat_offset);
  }
}

void ValueVersions::CopyCurrent() {
  CHECK(next_values_ == nullptr) << "an update is in progress";
  std::shared_ptr<AlignedBuffer> copy = pool_.Get();
  std::memcpy(copy->data(), values_->data(), values_->size());
  values_ = std::move(copy);
}

void ValueVersions::CopyConstants(absl::Span<const int> variables) {
  CHECK(next_values_ == nullptr) << "an update is in progress";
  std::vector<int64_t> editions = constants_->editions;
  for (const int variable : variables) ++editions[variable];
  std::shared_ptr<ConstantValues> copy = NewConstants(std::move(editions));
  std::memcpy(copy->flat->data(), constants_->flat->data(), constants_->flat->size());
  constants_ = std::move(copy);
}

void ValueVersions::BeginUpdate() {
  CHECK(next_values_ == nullptr) << "an update is in progress";
  next_values_ = pool_.Get();
  next_published_ = Publish(next_values_, &next_encoded_);
}

void ValueVersions::EncodeNext(const ParameterLayout::Segment& segment) {
  if (next_encoded_ == nullptr) return;
  Encode16(type_, segment.elements, Next(segment.flat_offset), next_encoded_->as<uint16_t>() + segment.flat_offset);
}

void ValueVersions::FoldUpdate(const ParameterLayout::UpdateOp& op, absl::Span<const float> value) {
  const ParameterLayout::Variable& place = layout_->variables()[op.variable];
  float* const variable = Next(place.flat_offset);
  if (place.spec.dtype() != v1::DT_FLOAT) return FoldIntegers(op.spec, place, value.data(), variable);
  if (!op.spec.zero_debias()) return Fold(op.spec, value, variable);
  const auto& state = layout_->update_state();
  FoldUnbiased(op.spec.decay(), value, variable, Next(state[op.state].flat_offset),
               Next(state[op.state + 1].flat_offset));
}

void ValueVersions::FoldUpdates(absl::Span<const std::vector<std::vector<float>>> updates) {
  const auto copy = [this](const ParameterLayout::Variable& variable) {
    std::memcpy(Next(variable.flat_offset), Current(variable.flat_offset), variable.bytes());
  };
  for (const auto& variable : layout_->variables()) {
    if (!variable.spec.trainable() && !variable.constant) copy(variable);
  }
  for (const auto& state : layout_->update_state()) copy(state);
  for (const std::vector<std::vector<float>>& slot : updates) {
    for (size_t op = 0; op < layout_->update_ops().size(); ++op) FoldUpdate(layout_->update_ops()[op], slot[op]);
  }
}

void ValueVersions::Commit() {
  values_ = std::move(next_values_);
  next_values_ = nullptr;
  published_ = std::move(next_published_);
  next_published_ = nullptr;
  next_encoded_ = nullptr;
}

void ValueVersions::DropUpdate() {
  next_values_ = nullptr;
  next_published_ = nullptr;
  next_encoded_ = nullptr;
}

void ValueVersions::TakeSpare(BufferPool::Buffers* taken) {
  pool_.Fill(taken);
  if (type_ != v1::DT_FLOAT) encoded_pool_.Fill(taken);
}

}  // namespace lockstep
