#include "lockstep/worker/nn/layers/embedding.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

std::string Config(int64_t vocabulary, int64_t dimension) {
  return absl::StrCat("name: 'x' embedding { vocabulary: ", vocabulary, " dimension: ", dimension, " }");
}

// Checks the embeddings of `ids` [batch, length], and the gradient, whose rows are summed in the order of the ids.
void ExpectLookup(int64_t length, int64_t vocabulary, int64_t dimension, const std::vector<int32_t>& ids,
                  int threads = 1) {
  const int64_t count = static_cast<int64_t>(ids.size());
  LayerRunner runner(MakeEmbedding, Config(vocabulary, dimension), {Shape{length}}, {count / length, threads, {}, ids});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<float> weights = RandomFloats(count * dimension, 5);
  runner.Backward(weights);
  std::vector<float> gradient(vocabulary * dimension);
  for (int64_t i = 0; i < count * dimension; ++i) {
    const int64_t at = ids[i / dimension] * dimension + i % dimension;
    ASSERT_EQ(runner.output()[i], runner.variable("embeddings")[at]) << i;
    gradient[at] += weights[i];
  }
  EXPECT_EQ(FirstDifference(runner.gradient("embeddings"), ToDoubles(gradient), 0), "");
  EXPECT_EQ(runner.violations(), "");
}

TEST(EmbeddingTest, SumsTheGradientsOfEqualIds) {
  for (const int64_t dimension : {1, 2, 7, 8, 9, 33}) {
    ExpectLookup(3, 5, dimension, {0, 4, 2, 2, 2, 0});
    ExpectLookup(1, 5, dimension, {4});
  }
  ExpectLookup(2, 1, 3, {0, 0});
}

TEST(EmbeddingTest, ALargeVocabularyIsSeveralBlocks) {
  const std::vector<int32_t> ids = {0, 16383, 16384, 32768, 16384, 39999};
  ExpectLookup(2, 40000, 2, ids);
  ExpectLookup(2, 40000, 2, ids, 3);
  ExpectLookup(1, 16384, 1, {16383});
}

TEST(EmbeddingTest, OneIdAnExampleHasNoLength) {
  LayerRunner scalar(MakeEmbedding, Config(5, 3), {Shape{}}, {2, 1, {}, {4, 1}});
  EXPECT_EQ(scalar.op().output_shape(), Shape{3});
  ASSERT_EQ(scalar.Forward(), absl::OkStatus());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(scalar.output()[i], scalar.variable("embeddings")[i < 3 ? 12 + i : i]);
  LayerRunner one(MakeEmbedding, Config(5, 3), {Shape{1}}, {});
  EXPECT_EQ(one.op().output_shape(), (Shape{1, 3}));
}

TEST(EmbeddingTest, NamesAnIdOutOfRange) {
  const auto message = [](const std::vector<int32_t>& ids) {
    LayerRunner runner(MakeEmbedding, Config(5, 3), {Shape{2}}, {2, 1, {}, ids});
    return std::string(runner.Forward().message());
  };
  EXPECT_EQ(message({0, 1, 4, 5}), "id 5 at position 1 of example 1 is not in [0, 5)");
  EXPECT_EQ(message({-1, 1, 4, 0}), "id -1 at position 0 of example 0 is not in [0, 5)");
}

TEST(EmbeddingTest, DeclaresItsTable) {
  LayerRunner runner(MakeEmbedding, Config(5, 3), {Shape{2}}, {});
  ASSERT_EQ(runner.spec().variables_size(), 1);
  EXPECT_EQ(runner.spec().variables(0).name(), "x/embeddings");
  EXPECT_EQ(runner.variable("embeddings").size(), 15u);
  EXPECT_EQ(runner.spec().variables(0).shape(0), 5);
  EXPECT_EQ(runner.spec().variables(0).initializer().uniform().min(), -0.05f);
  EXPECT_EQ(runner.spec().variables(0).initializer().uniform().max(), 0.05f);
}

TEST(EmbeddingTest, RefusesOtherInputsAndNumbers) {
  EXPECT_THAT(LayerStatus(MakeEmbedding, Config(5, 3), {Shape{2, 2}}).message(), HasSubstr("not shape [2,2]"));
  EXPECT_THAT(LayerStatus(MakeEmbedding, Config(0, 3), {Shape{2}}).message(), HasSubstr("vocabulary is 0"));
  EXPECT_THAT(LayerStatus(MakeEmbedding, Config(5, 0), {Shape{2}}).message(), HasSubstr("dimension is 0"));
}

}  // namespace
}  // namespace lockstep
