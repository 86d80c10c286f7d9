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

// The values of the constant variables. All versions share them until one of the variables is set. Immutable.
struct ConstantValues {
  // Flat values, from ParameterLayout::constants_offset() on. Null if the model has no constant variable.
  std::shared_ptr<AlignedBuffer> flat;
  // A number for each variable, which increases whenever the variable is set.
  std::vector<int64_t> editions;
};

// A version of all values, as sent to workers. Shared by all readers; immutable once the version is current.
struct PublishedValues {
  // Flat values of all variables except the constant ones, and the state of update ops. The chief updates and
  // saves these.
  std::shared_ptr<const AlignedBuffer> flat;
  std::shared_ptr<const ConstantValues> constants;
  // The trainable variables rounded to `type`, a 16-bit type, at the same element offsets. Null if workers get float32.
  std::shared_ptr<const AlignedBuffer> encoded;
  v1::DataType type = v1::DT_FLOAT;

  // Returns elements [segment.offset, segment.offset + segment.elements) of the segment's variable, in this object's
  // memory.
  FloatChunks Segment(const ParameterLayout& layout, const ParameterLayout::Segment& segment) const;
};

// The values of all variables: the current version and, during an update, the next one. An update writes a new buffer,
// and the current one, shared by threads that send or save it, stays unchanged. Versions share the constant variables.
// Life cycle: Renew, write the values to Current(), PublishCurrent; then for every step BeginUpdate, EncodeNext for
// every trainable segment, FoldUpdates, Commit. Thread-safety: Current, Next and EncodeNext may run on several threads
// for different segments. All other methods, except const ones, are for one thread at a time, and not during those
// calls.
class ValueVersions {
 public:
  // Does not allocate memory yet. Workers get the values as `type`, a float type. Keeps at most `spare_versions` unused
  // versions. With `shared`, other processes may map the memory of the values.
  ValueVersions(std::shared_ptr<const ParameterLayout> layout, v1::DataType type, size_t spare_versions, bool shared);

  // Allocates a current version without initializing it, except that the state of update ops is zero. The caller must
  // write every variable and then call PublishCurrent. The pool's threads pre-fault large memory; if `pool` is null,
  // this thread does.
  void Renew(ThreadPool* pool);
  // Returns the elements of the current version from `flat_offset` on. Only values that do not come from an update may
  // be written here. Call PublishCurrent afterwards.
  float* Current(int64_t flat_offset);
  void PublishCurrent();
  // Replaces the current version, except its constant variables, with a copy that may be written. Call it between
  // updates, and call PublishCurrent afterwards.
  void CopyCurrent();
  // Replaces the constant variables with a copy in the same way. The variables whose numbers are in `variables` get a
  // new edition.
  void CopyConstants(absl::Span<const int> variables);

  // Allocates the next version without initializing it.
  void BeginUpdate();
  // Returns the elements of the next version from `flat_offset` on. They must not be in a constant variable.
  float* Next(int64_t flat_offset) { return next_values_->as<float>() + flat_offset; }
  // Rounds a final trainable segment of the next version for the workers.
  void EncodeNext(const ParameterLayout::Segment& segment);
  // Writes the next version of the variables that update ops name, and of the state of update ops: the current values
  // with `updates` folded in (one value for each update op, for each slot in slot order). The value of an integer
  // variable is the bytes of its elements, in as many floats as they need.
  void FoldUpdates(absl::Span<const std::vector<std::vector<float>>> updates);
  // Makes the next version the current one.
  void Commit();
  // Drops the next version.
  void DropUpdate();

  // Allocates the spare versions in advance, and adds them to `taken`.
  void TakeSpare(BufferPool::Buffers* taken);

  // Return the two parts of the current version: the flat array without the constant variables, and the constant
  // variables.
  std::shared_ptr<const AlignedBuffer> current() const { return values_; }
  std::shared_ptr<const ConstantValues> constants() const { return constants_; }
  // The current version as sent to workers.
  std::shared_ptr<const PublishedValues> published() const { return published_; }
  // The version that the update in progress writes. Null if there is none.
  std::shared_ptr<const PublishedValues> next_published() const { return next_published_; }

 private:
  // Folds the value of one slot into the next version.
  void FoldUpdate(const ParameterLayout::UpdateOp& op, absl::Span<const float> value);
  // Allocates constant variables of these editions without initializing them.
  std::shared_ptr<ConstantValues> NewConstants(std::vector<int64_t> editions);
  // Returns a version of the values that consists of `flat` and uninitialized memory for the encoded values.
  std::shared_ptr<const PublishedValues> Publish(std::shared_ptr<const AlignedBuffer> flat,
                                                 std::shared_ptr<AlignedBuffer>* encoded);

  const std::shared_ptr<const ParameterLayout> layout_;
  const v1::DataType type_;
  BufferPool pool_;
  BufferPool encoded_pool_;
  BufferPool constants_pool_;
  std::shared_ptr<AlignedBuffer> values_;
  std::shared_ptr<const ConstantValues> constants_;
  std::shared_ptr<const PublishedValues> published_;
  // The next version, during an update.
  std::shared_ptr<AlignedBuffer> next_values_;
  std::shared_ptr<AlignedBuffer> next_encoded_;  // null for float32
  std::shared_ptr<const PublishedValues> next_published_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_VALUE_VERSIONS_H_
