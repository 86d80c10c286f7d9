#ifndef LOCKSTEP_SERVER_PS_VERSIONS_VALUE_VERSIONS_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_VALUE_VERSIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/tensor/float_chunks.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// One version of all values as workers get them. Shared by all who read it; unchanged once the version is current.
struct PublishedValues {
  // Flat float32: what the chief updates and saves.
  std::shared_ptr<const AlignedBuffer> flat;
  // The trainable variables rounded to `type`, a 16-bit one, at the same element offsets; null when workers get
  // float32.
  std::shared_ptr<const AlignedBuffer> encoded;
  v1::DataType type = v1::DT_FLOAT;

  // Elements [segment.offset, segment.offset + segment.elements) of its variable, in memory of this.
  FloatChunks Segment(const ParameterLayout& layout, const ParameterLayout::Segment& segment) const;
};

// The values of all variables: the current version and, during an update, the next one. An update writes a new buffer
// while the current one, shared by all who send or save it, stays unchanged. Life: Renew, the values written to
// Current(), PublishCurrent; then for every step BeginUpdate, EncodeNext of every trainable segment, FoldUpdates,
// Commit. Thread-safety: Current, Next and EncodeNext may run on several threads for different segments; everything
// else is for one thread at a time, and not during those, except for the const methods.
class ValueVersions {
 public:
  // Takes no memory yet. Workers get the values as `type`, a float type. At most `spare_versions` unused versions are
  // kept. With `shared` the values lie in memory that other processes may map.
  ValueVersions(std::shared_ptr<const ParameterLayout> layout, v1::DataType type, size_t spare_versions, bool shared);

  // A current version that is not initialized: every variable is to be written, and then published by PublishCurrent.
  // Large memory is provided by the pool's threads, by this one alone with null.
  void Renew(ThreadPool* pool);
  // The elements of the current version from `flat_offset`. Written only to start from values that are no update's,
  // with PublishCurrent afterwards.
  float* Current(int64_t flat_offset) { return values_->as<float>() + flat_offset; }
  void PublishCurrent();
  // Between updates: the current version is a copy of itself from now on, to be written, with PublishCurrent
  // afterwards.
  void CopyCurrent();

  // Gets memory for the next version, not initialized.
  void BeginUpdate();
  float* Next(int64_t flat_offset) { return next_values_->as<float>() + flat_offset; }
  // A trainable segment of the next version is final: rounds it for the workers.
  void EncodeNext(const ParameterLayout::Segment& segment);
  // Writes the non-trainable variables of the next version: the current ones, with `updates` folded in (one value for
  // each update op, for each slot in slot order).
  void FoldUpdates(absl::Span<const std::vector<std::vector<float>>> updates);
  // The next version becomes the current one.
  void Commit();
  // In place of Commit: there is no next version any more.
  void DropUpdate();

  // Takes memory for the spare versions in advance, and adds it to `taken`.
  void TakeSpare(BufferPool::Buffers* taken);

  // The flat array of the current version.
  std::shared_ptr<const AlignedBuffer> current() const { return values_; }
  // The current version as workers get it.
  std::shared_ptr<const PublishedValues> published() const { return published_; }
  // The version that the update in progress writes. Null when there is none.
  std::shared_ptr<const PublishedValues> next_published() const { return next_published_; }

 private:
  // Publishes `flat` with memory for what is encoded, not initialized.
  std::shared_ptr<const PublishedValues> Publish(std::shared_ptr<const AlignedBuffer> flat,
                                                 std::shared_ptr<AlignedBuffer>* encoded);

  const std::shared_ptr<const ParameterLayout> layout_;
  const v1::DataType type_;
  BufferPool pool_;
  BufferPool encoded_pool_;
  std::shared_ptr<AlignedBuffer> values_;
  std::shared_ptr<const PublishedValues> published_;
  // The update in progress.
  std::shared_ptr<AlignedBuffer> next_values_;
  std::shared_ptr<AlignedBuffer> next_encoded_;  // null for float32
  std::shared_ptr<const PublishedValues> next_published_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_VALUE_VERSIONS_H_
