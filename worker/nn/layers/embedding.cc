#include "lockstep/worker/nn/layers/embedding.h"

#include <algorithm>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/elementwise.h"

namespace lockstep {
namespace {

// Number of gradient rows that a thread computes at a time by scanning the whole batch for their ids.
constexpr int64_t kBlockRows = 1 << 14;

class EmbeddingOp : public LayerOp {
 public:
  EmbeddingOp(Shape output_shape, int64_t length, int64_t vocabulary, int64_t dimension, int embeddings)
      : LayerOp(std::move(output_shape)),
        length_(length),
        vocabulary_(vocabulary),
        dimension_(dimension),
        embeddings_(embeddings) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    const int64_t count = pass.batch * length_;
    for (int64_t i = 0; i < count; ++i) {
      if (pass.ids[i] < 0 || pass.ids[i] >= vocabulary_) {
        return absl::InvalidArgumentError(absl::StrCat("id ", pass.ids[i], " at position ", i % length_, " of example ",
                                                       i / length_, " is not in [0, ", vocabulary_, ")"));
      }
    }
    const float* table = pass.values[embeddings_];
    pass.compute->ParallelFor(pass.batch, [&](int64_t example) {
      for (int64_t i = example * length_; i < (example + 1) * length_; ++i) {
        std::copy_n(table + pass.ids[i] * dimension_, dimension_, output + i * dimension_);
      }
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    float* table = gradients->Buffer(embeddings_);
    const int64_t count = pass.batch * length_;
    pass.compute->ParallelRanges(vocabulary_, kBlockRows, [&](int64_t begin, int64_t end) {
      std::fill(table + begin * dimension_, table + end * dimension_, 0.0f);
      for (int64_t i = 0; i < count; ++i) {
        if (pass.ids[i] < begin || pass.ids[i] >= end) continue;
        float* row = table + pass.ids[i] * dimension_;
        AddElements(dimension_, row, output_gradient + i * dimension_, row);
      }
    });
    gradients->Final(embeddings_);
  }

 private:
  // Number of ids in an example.
  const int64_t length_;
  const int64_t vocabulary_;
  const int64_t dimension_;
  const int embeddings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeEmbedding(LayerBuilder* builder) {
  const config::v1::Layer::Embedding& config = builder->config().embedding();
  const Shape& input = builder->input_shape();
  if (input.rank() > 1) return builder->Error("it reads ids [length], not shape ", input.ToString());
  if (config.vocabulary() < 1) return builder->Error("vocabulary is ", config.vocabulary(), ", but must be at least 1");
  if (config.dimension() < 1) return builder->Error("dimension is ", config.dimension(), ", but must be at least 1");
  const int64_t length = input.num_elements();
  const int64_t dimension = config.dimension();
  absl::StatusOr<Shape> output =
      input.rank() == 1 ? builder->OutputShape({length, dimension}) : builder->OutputShape({dimension});
  RETURN_IF_ERROR(output.status());
  ASSIGN_OR_RETURN(const int embeddings,
                   builder->AddVariable("embeddings", {config.vocabulary(), dimension}, config.initializer()));
  return std::make_unique<EmbeddingOp>(*std::move(output), length, config.vocabulary(), dimension, embeddings);
}

}  // namespace lockstep
