#include "lockstep/common/config/validation/validation.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/text/text_proto.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Message>
Message Parse(absl::string_view text) {
  Message message;
  const absl::Status status = ParseTextProto(text, "test", &message);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

constexpr const char* kInput =
    "input { split { name: 'train' synthetic { examples: 100 shape: 4 classes: 2 } } batch_size: 8 } ";
constexpr const char* kModel =
    "model { layer { name: 'hidden' dense { units: 10 } } layer { name: 'logits' dense { units: 2 } } "
    "loss { softmax_cross_entropy {} } } ";
constexpr const char* kRest = "optimizer { sgd {} learning_rate { initial: 0.1 } } training { steps: 10 } ";

// Merges the text into a valid configuration and returns the problems found.
std::vector<std::string> Complaints(absl::string_view text) {
  config::v1::RunSpec config = Parse<config::v1::RunSpec>(absl::StrCat(kInput, kModel, kRest));
  config.MergeFrom(Parse<config::v1::RunSpec>(text));
  const absl::Status status = ValidateRunSpec(config);
  if (status.ok()) return {};
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return absl::StrSplit(status.message(), '\n');
}

TEST(ValidationTest, AcceptsAGoodConfiguration) { EXPECT_THAT(Complaints(""), ElementsAre()); }

TEST(ValidationTest, AcceptsARunWhoseModelTheWorkerBrings) {
  EXPECT_TRUE(ValidateRunSpec(Parse<config::v1::RunSpec>(kRest)).ok());
}

// Validation accepts any registered name. The code that uses a name checks that the program has registered it.
TEST(ValidationTest, AcceptsWhatIsRegisteredByItsName) {
  EXPECT_THAT(Complaints("input { split { name: 'test' registered { name: 'spirals' } } } "
                         "evaluation { metric: 'registered:f1' metric: 'accuracy' }"),
              ElementsAre());
}

TEST(ValidationTest, NamesEachProblemOfAnEmptyOne) {
  const absl::Status status = ValidateRunSpec(config::v1::RunSpec());
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  EXPECT_THAT(
      lines,
      ElementsAre("optimizer has no kind, must have one of sgd, momentum, adam, adagrad, rmsprop, adadelta, ftrl, "
                  "proximal_sgd, proximal_adagrad, adagrad_da, nadam, lion",
                  "optimizer.learning_rate.initial is 0, must be a finite number above 0, such as 0.1",
                  "training.steps is 0, must be above 0, such as 1000"));
}

TEST(ValidationTest, LayersNeedAnInput) {
  const absl::Status status = ValidateRunSpec(Parse<config::v1::RunSpec>(absl::StrCat(kModel, kRest)));
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  EXPECT_THAT(lines,
              ElementsAre("input has no split named \"train\"", "input.batch_size is 0, must be above 0, such as 64"));
}

TEST(ValidationTest, AWorkersOwnInputNeedsNoSplit) {
  const auto problems = [](absl::string_view input) {
    const auto config = Parse<config::v1::RunSpec>(absl::StrCat("input { ", input, " } ", kRest));
    return std::string(ValidateRunSpec(config).message());
  };
  EXPECT_EQ(problems("batch_size: 8"), "");
  EXPECT_EQ(problems("batch_size: 8 split { name: 'test' synthetic { examples: 9 shape: 4 classes: 2 } }"),
            "input has no split named \"train\"");
}

// Each text breaks one rule, which must result in exactly one matching line.
TEST(ValidationTest, EachProblemIsOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"training { steps: -5 }", "training.steps is -5, must be above 0"},
      {"training { replicas_to_aggregate: -1 }", "training.replicas_to_aggregate is -1, must be in [1, 1048576]"},
      {"training { replicas_to_aggregate: 2000000 }", "training.replicas_to_aggregate is 2000000"},
      {"training { startup_delay_steps: -1 }", "training.startup_delay_steps is -1, must be 0 or more"},
      {"checkpoint { every_seconds: -1 }", "checkpoint.every_seconds is -1, must be a finite number, 0 or more"},
      {"checkpoint { every_seconds: inf }", "checkpoint.every_seconds is inf"},
      {"checkpoint { stop_seconds: -1 }", "checkpoint.stop_seconds is -1, must be a finite number, 0 or more"},
      {"checkpoint { every_steps: -1 }", "checkpoint.every_steps is -1"},
      {"checkpoint { keep: -1 }", "checkpoint.keep is -1"},
      {"checkpoint { warm_start_variables {} }",
       "checkpoint.warm_start_variables is set, but checkpoint.warm_start names no checkpoint"},
      {"checkpoint { warm_start: 'a' warm_start_variables { include: 'x' include: '(' } }",
       "checkpoint.warm_start_variables.include[1] is \"(\", not a regular expression"},
      {"summary { every_steps: -1 }", "summary.every_steps is -1"},
      {"summary { gradients_every_steps: -1 }", "summary.gradients_every_steps is -1"},
      {"evaluation { every_steps: -1 }", "evaluation.every_steps is -1"},
      {"evaluation { split: 'dev' }", "evaluation.split is \"dev\", which is not a split of the input"},
      {"evaluation { metric: 'f1' }", "evaluation.metric[0] is \"f1\", must be one of accuracy, mean_loss"},
      {"evaluation { metric: 'auc' metric: 'registered:' }",
       "evaluation.metric[1] is \"registered:\", must be one of accuracy, mean_loss, rmse, auc, confusion_matrix, "
       "top_5 (any number), or registered:NAME"},
      {"evaluation { class_name: 'a' class_name_file: 'f' }",
       "evaluation.class_name_file is set, and so is class_name; use one of them"},
      {"compression { top_k {} }", "compression.top_k.fraction is 0, must be in (0, 1], such as 0.1"},
      {"compression { top_k { fraction: 1.5 } }", "compression.top_k.fraction is 1.5, must be in (0, 1]"},
      {"compression { top_k { fraction: nan } }", "compression.top_k.fraction is nan"},
      {"audit { fraction: 1.5 }", "audit.fraction is 1.5, must be in [0, 1], such as 0.01"},
      {"training { skip_non_finite: true end_on_non_finite: true }",
       "training.skip_non_finite is true, but end_on_non_finite is, too; a step is skipped or ends the run"},
      {"training { skip_non_finite: true } compression { top_k { fraction: 0.1 } }",
       "training.skip_non_finite is true, but with compression.top_k workers have kept what a skipped step would undo"},
      {"compression { top_k { fraction: 0.1 } gradients: BFLOAT16 }",
       "compression.gradients is BFLOAT16, must be FLOAT32 together with compression.top_k"},
      {"compression { values: 7 }", "compression.values is 7, must be a number that Format knows"},
      {"cluster { lease_seconds: 0 }", "cluster.lease_seconds is 0, must be a finite number above 0"},
      {"cluster { chief_wait_seconds: nan }", "cluster.chief_wait_seconds is nan"},
      {"cluster { linger_seconds: -1 }", "cluster.linger_seconds is -1, must be a finite number, 0 or more"},
      {"training { replicas_to_aggregate: 16 } cluster { max_partial_sums: 3 }",
       "cluster.max_partial_sums is 3, but the sums of 16 slots need 4 at least"},
      {"training { replicas_to_aggregate: 15 } cluster { max_partial_sums: 2 }",
       "cluster.max_partial_sums is 2, but the sums of 15 slots need 3 at least"},
      {"training { async {} replicas_to_aggregate: 2 }",
       "training.replicas_to_aggregate is 2, must be absent, as async is given, and each contribution makes a step"},
      {"training { async {} reduction: SUM }", "training.reduction is SUM, but async is given"},
      {"training { replicas_to_aggregate: 4 first_arrivals { total_replicas: 2 initial_tokens: 1 } }",
       "training.first_arrivals.initial_tokens is 1, must be in [2, 1048576]: 2 workers make a step of 4 "
       "contributions"},
      {"training { first_arrivals { total_replicas: -1 } }", "training.first_arrivals.total_replicas is -1"},
      {"training { first_arrivals {} startup_delay_steps: 5 }", "training.startup_delay_steps is 5, must be absent"},
      {"training { async { max_staleness: -1 } }", "training.async.max_staleness is -1, must be 0 or more"},
      {"training { async {} } audit {}", "audit is set, but the policy is ASYNC"},
      {"training { async {} } compression { top_k { fraction: 0.1 } }",
       "compression.top_k is set, but the policy is ASYNC"},
      {"training { async {} } cluster { max_partial_sums: 1 }",
       "cluster.max_partial_sums is 1, must be absent: the policy is ASYNC"},
      {"cluster { max_partial_sums: -1 }", "cluster.max_partial_sums is -1"},
      {"cluster { max_staged_contributions: 2 }",
       "cluster.max_staged_contributions is 2, must be absent: the policy is DETERMINISTIC"},
      {"training { record_order: true }",
       "training.record_order is true, but the policy is DETERMINISTIC, whose weights depend on no order of arrival"},
      {"training { async {} } cluster { max_staged_contributions: -1 }",
       "cluster.max_staged_contributions is -1, must be in [1, 1048576]"},
      {"training { replicas_to_aggregate: 16 } cluster { max_partial_sums: 7 } compression { top_k { fraction: 0.1 } }",
       "cluster.max_partial_sums is 7, but the sums of 16 slots need 8 at least with compression.top_k"},
      {"cluster { compute_threads: -1 }", "cluster.compute_threads is -1, must be in [1, 1024]"},
      {"input { batch_size: -8 }", "input.batch_size is -8, must be above 0"},
      {"input { augmentation { crop_padding: -1 } }", "input.augmentation.crop_padding is -1"},
      {"input { normalization { mean: nan } }", "input.normalization.mean is nan"},
      {"input { normalization { stddev: 0 } }", "input.normalization.stddev is 0"},
      {"input { last_batch: 7 }", "input.last_batch is 7, must be a number that LastBatch knows"},
      {"optimizer { clip { by_norm: -1 } }", "optimizer.clip.by_norm is -1"},
      {"optimizer { clip { by_value: inf } }", "optimizer.clip.by_value is inf"},
      {"optimizer { clip { by_global_norm: nan } }", "optimizer.clip.by_global_norm is nan"},
      {"optimizer { clip { mean_by_global_norm: -1 } }", "optimizer.clip.mean_by_global_norm is -1"},
      {"optimizer { multipliers { variables: 'a' factor: nan } }", "optimizer.multipliers[0].factor is nan"},
      {"optimizer { multipliers { variables: '(' } }", "multipliers[0].variables is \"(\", not a regular expression"},
      {"optimizer { multipliers { factor: 2 } }", "optimizer.multipliers[0].variables is empty"},
      {"optimizer { momentum { momentum: 1.5 } }", "optimizer.momentum.momentum is 1.5, must be in [0, 1)"},
      {"model { registered: 'mine' }", "model has 2 layers and registered: \"mine\""},
      {"model { regularizer { variables: 'k' l2: -1 } }", "model.regularizer[0].l2 is -1"},
      {"model { regularizer { l2: 1 } }", "model.regularizer[0].variables is empty"},
      {"model { loss { weight: 1 } }", "model.loss[1] has no kind"},
      {"model { loss { hinge {} weight: inf } }", "model.loss[1].weight is inf"},
      {"model { loss { hinge {} input: 'x' } }", "model.loss[1] reads \"x\", which is not a layer"},
      {"model { loss { huber { delta: 0 } } }", "model.loss[1].huber.delta is 0"},
      {"model { loss { softmax_cross_entropy { label_smoothing: 2 } } }", "label_smoothing is 2, must be in [0, 1]"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Complaints(text), ElementsAre(HasSubstr(message))) << text;
  }
}

TEST(ValidationTest, EachProblemOfALayerIsOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"name: 'x'", "model.layer[2] has no kind"},
      {"dense { units: 1 }", "model.layer[2].name is empty"},
      {"name: 'x' reshape { shape: 2 shape: 0 }", "model.layer[2].reshape.shape[1] is 0, must be above 0, or -1 once"},
      {"name: 'x' reshape { shape: -1 shape: -1 }",
       "model.layer[2].reshape.shape[1] is -1, must be above 0, or -1 once"},
      {"name: 'hidden' flatten {}", "model.layer[2].name is \"hidden\", which is taken"},
      {"name: 'input' flatten {}", "model.layer[2].name is \"input\", which is taken"},
      {"name: 'x' input: 'y' flatten {}", "model.layer[2] reads \"y\", which is not a layer before it"},
      {"name: 'x' input: 'x' flatten {}", "model.layer[2] reads \"x\""},
      {"name: 'x' dense {}", "model.layer[2].dense.units is 0, must be above 0"},
      {"name: 'x' dense { units: 1 kernel_initializer { normal { stddev: -1 } } }",
       "model.layer[2].dense.kernel_initializer.normal.stddev is -1"},
      {"name: 'x' dense { units: 1 activation: 99 }", "model.layer[2].dense.activation is 99"},
      {"name: 'x' conv2d { kernel: 3 }", "model.layer[2].conv2d.filters is 0"},
      {"name: 'x' conv2d { filters: 1 }", "conv2d.kernel has 0 numbers, must have 1 or 2"},
      {"name: 'x' conv2d { filters: 1 kernel: [1, 2, 3] }", "conv2d.kernel has 3 numbers"},
      {"name: 'x' conv2d { filters: 1 kernel: 0 }", "conv2d.kernel[0] is 0"},
      {"name: 'x' conv2d { filters: 1 kernel: 3 strides: -1 }", "conv2d.strides[0] is -1"},
      {"name: 'x' max_pool {}", "max_pool.window has 0 numbers"},
      {"name: 'x' average_pool { window: 2 strides: 0 }", "average_pool.strides[0] is 0"},
      {"name: 'x' batch_norm { decay: 1.5 }", "batch_norm.decay is 1.5"},
      {"name: 'x' batch_norm { decay: 1 zero_debias_moving_mean: true }", "batch_norm.decay is 1, must be in [0, 1)"},
      {"name: 'x' batch_norm { epsilon: 0 }", "batch_norm.epsilon is 0"},
      {"name: 'x' layer_norm { epsilon: -1 }", "layer_norm.epsilon is -1"},
      {"name: 'x' dropout { rate: 1 }", "dropout.rate is 1, must be in [0, 1)"},
      {"name: 'x' embedding { dimension: 1 }", "embedding.vocabulary is 0"},
      {"name: 'x' embedding { vocabulary: 1 }", "embedding.dimension is 0"},
      {"name: 'x' activation { kind: LEAKY_RELU slope: nan }", "activation.slope is nan"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Complaints(absl::StrCat("model { layer { ", text, " } }")), ElementsAre(HasSubstr(message))) << text;
  }
}

TEST(ValidationTest, EachProblemOfASplitIsOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"name: 'x'", "input.split[1] has no source, must have one of idx, csv"},
      {"idx { images: 'a' labels: 'b' }", "input.split[1].name is empty"},
      {"name: 'train' idx { images: 'a' labels: 'b' }", "input.split[1].name is \"train\", as that of another split"},
      {"name: 'x' idx { images: 'a' }", "input.split[1].idx.labels is empty"},
      {"name: 'x' idx { labels: 'a' }", "input.split[1].idx.images is empty"},
      {"name: 'x' csv { column { name: 'a' } }", "csv.file is empty"},
      {"name: 'x' csv { file: 'f' column { name: 'a' } separator: ', ' }", "csv.separator is \", \", must be one"},
      {"name: 'x' csv { file: 'f' column {} }", "csv.column[0].name is empty"},
      {"name: 'x' csv { file: 'f' column { name: 'a' count: 0 } }", "csv.column[0].count is 0, must be"},
      {"name: 'x' csv { file: 'f' column { name: 'a' last: 'b' count: 2 } }",
       "csv.column[0].last is set, and so is count; use one of them"},
      {"name: 'x' csv { file: 'f' no_header: true column { last: 'b' } }",
       "csv.column[0].last needs a header line; without one use count"},
      {"name: 'x' csv { file: 'f' column { name: 'a' } column { name: 'b' type: LABEL count: 2 } }",
       "csv.column[1] is a range of columns, must be a single LABEL, WEIGHT or ID"},
      {"name: 'x' npz {}", "input.split[1].npz.file is empty"},
      {"name: 'x' npy { features: 'x.npy' }", "input.split[1].npy.labels is empty"},
      {"name: 'x' csv { file: 'f' column { name: 'a' one_hot: true } }",
       "column[0].one_hot is true, must be that of a"},
      {"name: 'x' csv { file: 'f' column { name: 'a' type: CATEGORY standardize: true } }",
       "column[0].standardize is true, must be that of FLOAT or INT"},
      {"name: 'x' csv { file: 'f' column { name: 'a' type: CATEGORY category: 'b' hash_buckets: 2 } }",
       "column[0].hash_buckets is set, must be that of a CATEGORY without a list"},
      {"name: 'x' csv { file: 'f' column { name: 'a' type: CATEGORY hash_buckets: -2 } }",
       "column[0].hash_buckets is -2, must be in [1, 2147483647]"},
      {"name: 'x' csv { file: 'f' column { name: 'a' type: CATEGORY missing { mean: true } } }",
       "column[0].missing.mean is true, must be that of FLOAT or INT"},
      {"name: 'x' csv { file: 'f' column { name: 'a' missing {} } }", "column[0].missing is empty, must have one of"},
      {"name: 'x' csv { file: 'f' column { name: 'a' missing { default: '' } } }", "missing.default is empty"},
      {"name: 'x' csv { file: 'f' column { name: 'a' } prepared { column: 'a' } }", "prepared[0].stddev is 0, must be"},
      {"name: 'x' csv { file: 'f' column { name: 'a' } column { name: 'b' type: ID } column { name: 'c' type: ID } }",
       "number of ID columns is 2, must be at most 1"},
      {"name: 'x' csv { file: 'f' column { name: 'a' category: 'b' } }", "column[0] lists categories"},
      {"name: 'x' csv { file: 'f' column { name: 'a' type: LABEL } }", "number of feature columns is 0"},
      {"name: 'x' csv { file: 'f' no_header: true column {} column { type: LABEL } column { type: LABEL } }",
       "number of LABEL columns is 2, must be at most 1"},
      {"name: 'x' csv { file: 'f' no_header: true column {} column { type: WEIGHT } column { type: WEIGHT } }",
       "number of WEIGHT columns is 2"},
      {"name: 'x' libsvm { features: 3 }", "libsvm.file is empty"},
      {"name: 'x' libsvm { file: 'f' }", "libsvm.features is 0"},
      {"name: 'x' tfrecord { feature_key: 'k' feature_shape: 3 }", "tfrecord.file is empty, must name one"},
      {"name: 'x' tfrecord { file: 'f' feature_shape: 3 }", "tfrecord.feature_key is empty"},
      {"name: 'x' tfrecord { file: 'f' feature_key: 'k' }", "tfrecord.feature_shape is empty"},
      {"name: 'x' tfrecord { file: 'f' feature_key: 'k' feature_shape: -1 }", "tfrecord.feature_shape[0] is -1"},
      {"name: 'x' tfrecord { file: 'f' feature_key: 'k' image { width: 3 } }",
       "tfrecord.image.height is 0, must be in [1, 65536]"},
      {"name: 'x' tfrecord { file: 'f' feature_key: 'k' image { height: 3 width: 3 } feature_shape: 3 }",
       "tfrecord.feature_shape is set, and so is image"},
      {"name: 'x' images { form { height: 3 width: 3 } }", "images.folder is empty"},
      {"name: 'x' images { folder: 'f' form { height: 3 width: 3 channels: 4 } }",
       "images.form.channels is 4, must be 3 (colours) or 1 (grey)"},
      {"name: 'x' images { folder: 'f' form { height: 3 width: 70000 } }", "images.form.width is 70000"},
      {"name: 'x' images { folder: 'f' form { height: 3 width: 3 } class_name: 'a' class_name: 'a' }",
       "images.class_name[1] is \"a\", as that of"},
      {"name: 'x' registered {}", "input.split[1].registered.name is empty"},
      {"name: 'x' registered { name: 'y' file: 'a' file: '' }", "input.split[1].registered.file[1] is empty"},
      {"name: 'x' synthetic { shape: 3 classes: 2 }", "synthetic.examples is 0"},
      {"name: 'x' synthetic { examples: 3 classes: 2 }", "synthetic.shape is empty"},
      {"name: 'x' synthetic { examples: 3 shape: 2 }", "synthetic.classes is 0"},
      {"name: 'x' synthetic { examples: 3 shape: 2 classes: 2 noise: -1 }", "synthetic.noise is -1"},
      {"name: 'x' synthetic { kind: SEQUENCE examples: 3 shape: 2 classes: 4 vocabulary: 3 }",
       "synthetic.vocabulary is 3, must be at least the number of classes, 4"},
      {"name: 'x' synthetic { kind: SEQUENCE examples: 3 shape: [2, 2] classes: 4 vocabulary: 4 }",
       "synthetic.shape's number of dimensions is 2, must be 1"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Complaints(absl::StrCat("input { split { ", text, " } }")), ElementsAre(HasSubstr(message))) << text;
  }
}

TEST(ValidationTest, NamesTheFieldOfALearningRate) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "optimizer.learning_rate.initial is 0, must be a finite number above 0, such as 0.1"},
      {"initial: -1", "initial is -1"},
      {"initial: inf", "initial is inf"},
      {"initial: nan", "initial is nan"},
      {"initial: 1 warmup_steps: -3", "warmup_steps is -3"},
      {"initial: 1 exponential { decay_rate: 0.5 }", "exponential.decay_steps is 0"},
      {"initial: 1 exponential { decay_steps: 5 }", "exponential.decay_rate is 0"},
      {"piecewise { boundaries: 1 values: 1 }", "piecewise has 1 values and 1 boundaries"},
      {"piecewise { boundaries: [2, 2] values: [1, 2, 3] }", "piecewise.boundaries[1] is 2, must be above"},
      {"piecewise { boundaries: 2 values: [1, -3] }", "piecewise.values[1] is -3"},
      {"table {}", "table has 0 steps and 0 rates, must have as many of both, one at least"},
      {"table { steps: [1, 2] rates: 1 }", "table has 2 steps and 1 rates"},
      {"table { steps: -1 rates: 1 }", "table.steps[0] is -1, must be 0 or more"},
      {"table { steps: [3, 3] rates: [1, 2] }", "table.steps[1] is 3, must be above the previous one, 3"},
      {"table { steps: 1 rates: nan }", "table.rates[0] is nan"},
      {"initial: 1 table { steps: 1 rates: 1 }", "initial is 1, but table has every rate; leave it out"},
      {"initial: 1 polynomial {}", "polynomial.decay_steps is 0"},
      {"initial: 1 polynomial { decay_steps: 1 end: -1 }", "polynomial.end is -1"},
      {"initial: 1 polynomial { decay_steps: 1 power: -1 }", "polynomial.power is -1"},
      {"initial: 1 inverse_time { decay_rate: 1 }", "inverse_time.decay_steps is 0"},
      {"initial: 1 inverse_time { decay_steps: 1 decay_rate: -1 }", "inverse_time.decay_rate is -1"},
      {"initial: 1 cosine {}", "cosine.decay_steps is 0"},
      {"initial: 1 cosine { decay_steps: 1 alpha: 2 }", "cosine.alpha is 2, must be in [0, 1]"},
      {"initial: 1 cosine_restarts {}", "cosine_restarts.first_decay_steps is 0"},
      {"initial: 1 cosine_restarts { first_decay_steps: 1 t_mul: 0.5 }", "cosine_restarts.t_mul is 0.5"},
      {"initial: 1 cosine_restarts { first_decay_steps: 1 m_mul: -1 }", "cosine_restarts.m_mul is -1"},
      {"initial: 1 cosine_restarts { first_decay_steps: 1 alpha: nan }", "cosine_restarts.alpha is nan"},
  };
  for (const auto& [text, message] : cases) {
    auto config = Parse<config::v1::RunSpec>(absl::StrCat(kInput, kModel, kRest));
    *config.mutable_optimizer()->mutable_learning_rate() = Parse<config::v1::LearningRate>(text);
    const absl::Status status = ValidateRunSpec(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST(ValidationTest, NamesTheParameterOfAnInitializer) {
  const std::pair<const char*, const char*> cases[] = {
      {"constant { value: inf }", "initializer.constant.value is inf, must be a finite number"},
      {"uniform { min: 1 max: 0 }", "initializer.uniform.min is 1, must be a finite number, not above max, which is 0"},
      {"uniform { min: nan }", "initializer.uniform.min is nan"},
      {"uniform { max: inf }", "initializer.uniform.max is inf"},
      {"normal { mean: nan }", "initializer.normal.mean is nan"},
      {"normal { stddev: -1 }", "initializer.normal.stddev is -1, must be a finite number, 0 or more"},
      {"truncated_normal { mean: inf }", "initializer.truncated_normal.mean is inf"},
      {"truncated_normal { stddev: nan }", "initializer.truncated_normal.stddev is nan"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ValidateInitializer(Parse<v1::Initializer>(text));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  for (const char* text : {"", "zeros {}", "glorot {}", "he {}", "normal {}", "uniform { min: 1 max: 1 }"}) {
    EXPECT_TRUE(ValidateInitializer(Parse<v1::Initializer>(text)).ok()) << text;
  }
}

}  // namespace
}  // namespace lockstep
