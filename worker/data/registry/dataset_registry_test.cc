#include "lockstep/worker/data/registry/dataset_registry.h"

#include <utility>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExampleSpec OneFloat() {
  ExampleSpec spec;
  spec.features_shape = Shape({1});
  spec.classes = 2;
  return spec;
}

// A dataset in which example i is the number first + i, of class i % 2.
class CountingDataset : public Dataset {
 public:
  CountingDataset(float first, int64_t size, const ExampleSpec& spec = OneFloat())
      : Dataset(spec, size, false, Crc32c(std::to_string(first))), first_(first) {}

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out->features.flat<float>()[i] = first_ + static_cast<float>(indices[i]);
      out->labels.flat<int32_t>()[i] = static_cast<int32_t>(indices[i] % 2);
    }
    return absl::OkStatus();
  }
  const float first_;
};

DatasetRequest* last_request = nullptr;

REGISTER_DATASET("counting", [](const DatasetRequest& request) -> absl::StatusOr<std::unique_ptr<Dataset>> {
  if (last_request != nullptr) *last_request = request;
  const auto first = request.source.parameter().find("first");
  if (first == request.source.parameter().end()) return absl::InvalidArgumentError("parameter 'first' is missing");
  return std::make_unique<CountingDataset>(std::stof(first->second), 4);
});

absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& source, const std::string& rest = "",
                                              const DatasetOptions& options = {}) {
  config::v1::InputConfig config;
  const std::string text = "split { name: 'train' registered { " + source + " } } " + rest;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return OpenDataset(config, "train", 7, options);
}

constexpr char kFromThree[] = "name: 'counting' parameter { key: 'first' value: '3' } ";

TEST(DatasetRegistryTest, OpensARegisteredInputWithItsDigest) {
  const auto dataset = Open(kFromThree);
  ASSERT_EQ(dataset.status(), absl::OkStatus());
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({3, 0}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(6, 3));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(1, 0));
  EXPECT_EQ((*dataset)->digest().examples(), 4);
  EXPECT_EQ((*dataset)->digest().crc32c(), CountingDataset(3, 4).digest().crc32c());
}

TEST(DatasetRegistryTest, NormalizesItAndKeepsItsDigest) {
  const auto dataset = Open(kFromThree, "normalization { mean: 3 stddev: 2 }");
  ASSERT_EQ(dataset.status(), absl::OkStatus());
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0, 1}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0, 0.5f));
  EXPECT_EQ((*dataset)->digest().crc32c(), CountingDataset(3, 4).digest().crc32c());
}

TEST(DatasetRegistryTest, TheFactoryKnowsTheConfiguration) {
  DatasetRequest request;
  last_request = &request;
  MemoryFileSystem fs;
  DatasetOptions options;
  options.fs = &fs;
  options.base_directory = "/data";
  options.index_directory = "/index";
  ASSERT_TRUE(
      Open(std::string(kFromThree) + "file: 'a' file: '/b'", "on_damage: SKIP_AND_COUNT", options).status().ok());
  last_request = nullptr;
  EXPECT_EQ(request.split, "train");
  EXPECT_EQ(request.seed, 7);
  EXPECT_EQ(request.on_damage, config::v1::InputConfig::SKIP_AND_COUNT);
  EXPECT_THAT(request.source.file(), ElementsAre("/data/a", "/b"));
  EXPECT_EQ(request.options.fs, &fs);
  EXPECT_EQ(request.options.index_directory, "/index");
}

TEST(DatasetRegistryTest, ReturnsTheErrorOfTheFactory) {
  EXPECT_EQ(Open("name: 'counting'").status(), absl::InvalidArgumentError("parameter 'first' is missing"));
}

TEST(DatasetRegistryTest, RefusesAnUnreadableInput) {
  ExampleSpec bytes = OneFloat();
  bytes.features_dtype = v1::DT_UINT8;
  ASSERT_TRUE(RegisterDataset("nothing", [](const DatasetRequest&) { return nullptr; }).ok());
  ASSERT_TRUE(
      RegisterDataset("empty", [](const DatasetRequest&) { return std::make_unique<CountingDataset>(0, 0); }).ok());
  ASSERT_TRUE(RegisterDataset("bytes", [bytes](const DatasetRequest&) {
                return std::make_unique<CountingDataset>(0, 4, bytes);
              }).ok());
  ExampleSpec classless = OneFloat();
  classless.classes = 0;
  ASSERT_TRUE(RegisterDataset("classless", [classless](const DatasetRequest&) {
                return std::make_unique<CountingDataset>(0, 4, classless);
              }).ok());
  const std::pair<const char*, const char*> cases[] = {
      {"nothing", "the registered input \"nothing\" made nothing"},
      {"empty", "the registered input \"empty\" has 0 examples, must have 1 or more"},
      {"bytes", "the registered input \"bytes\" has uint8 features, must have float32 or int32"},
      {"classless", "the registered input \"classless\" has int32[] labels and 0 classes, must have"},
  };
  for (const auto& [name, message] : cases) {
    const absl::Status status = Open(std::string("name: '") + name + "'").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(DatasetRegistryTest, UnknownInputListsTheRegistered) {
  EXPECT_THAT(RegisteredDatasets(), Contains("counting"));
  const absl::Status status = Open("name: 'rings'").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("registered.name is \"rings\", an input that this program lacks; it has "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("counting"));
}

TEST(DatasetRegistryTest, RefusesANameTwice) {
  EXPECT_TRUE(absl::IsAlreadyExists(RegisterDataset("counting", nullptr)));
}

}  // namespace
}  // namespace lockstep
