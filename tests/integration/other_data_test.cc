// Tests workers that read different data than their run, over real servers. They must be refused with an error that
// names them, and must not affect the run.
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/worker/data/registry/dataset_registry.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;

constexpr char kFile[] = "/data.csv";

config::v1::RunSpec CsvRunSpec() {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
    input {
      split { name: "train" csv { file: "/data.csv" column { name: "x" } column { name: "y" type: LABEL } } }
      batch_size: 4
    }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { steps: 40 replicas_to_aggregate: 2 seed: 3 }
    checkpoint { every_steps: 10 }
    cluster { lease_seconds: 2 }
  )",
                                                            &config));
  ApplyDefaults(&config);
  return config;
}

// A user's input, in which each byte of a file is an example.
class ByteDataset : public Dataset {
 public:
  ByteDataset(const ExampleSpec& spec, const std::string& bytes)
      : Dataset(spec, static_cast<int64_t>(bytes.size()), false, ExtendCrc32c(StartOfDigest(spec, false), bytes)),
        bytes_(bytes) {}

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out->features.flat<float>()[i] = static_cast<float>(bytes_[indices[i]]);
      out->labels.flat<int32_t>()[i] = bytes_[indices[i]] % 2;
    }
    return absl::OkStatus();
  }
  const std::string bytes_;
};

REGISTER_DATASET("bytes", [](const DatasetRequest& request) -> absl::StatusOr<std::unique_ptr<Dataset>> {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(request.options.fs, request.source.file(0)));
  return std::make_unique<ByteDataset>(ExampleSpec{v1::DT_FLOAT, Shape({1}), v1::DT_INT32, Shape(), 2}, bytes);
});

class OtherDataTest : public ::testing::TestWithParam<bool> {
 protected:
  OtherDataTest() {
    options_.config = CsvRunSpec();
    options_.local = GetParam();
    options_.data = &data_;
  }

  void WriteRows(int rows) {
    std::string text = "x,y\n";
    for (int i = 0; i < rows; ++i) absl::StrAppend(&text, (i * 37) % 11, ",", i % 2, "\n");
    ASSERT_TRUE(WriteFileAtomically(&data_, kFile, text).ok());
  }

  // Returns the digest of an undisturbed run.
  std::string Undisturbed() {
    TestCluster cluster(options_);
    WriteRows(100);
    EXPECT_TRUE(cluster.StartChief().ok());
    cluster.StartWorker();
    EXPECT_TRUE(cluster.Wait().ok());
    return cluster.Digest().value();
  }

  static void ExpectRefused(const absl::Status& status, const std::string& worker) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        ContainsRegex(worker +
                      " on host-[0-9]+ reads 101 examples with CRC32C [0-9a-f]{8}, the run 100 examples with CRC32C "
                      "[0-9a-f]{8}"));
  }

  MemoryFileSystem data_;
  TestCluster::Options options_;
};

INSTANTIATE_TEST_SUITE_P(LocalAndRemote, OtherDataTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Local" : "Remote"; });

TEST_P(OtherDataTest, RefusesAWorkerWithOneMoreRow) {
  const std::string expected = Undisturbed();
  Mutex mutex;
  CondVar changed;
  bool begun = false, refused = false;
  options_.before_batch = [&](int64_t step) {
    MutexLock lock(&mutex);
    begun = true;
    changed.SignalAll();
    while (step >= 5 && !refused) changed.Wait(&mutex);
  };
  TestCluster cluster(options_);
  WriteRows(100);
  ASSERT_TRUE(cluster.StartChief().ok());
  cluster.StartWorker();
  {
    MutexLock lock(&mutex);
    while (!begun) changed.Wait(&mutex);
  }
  WriteRows(101);
  const int other = cluster.StartWorker();
  ExpectRefused(cluster.JoinWorker(other), "worker-1");
  {
    MutexLock lock(&mutex);
    refused = true;
    changed.SignalAll();
  }
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorkers()[0].ok());
  EXPECT_EQ(cluster.Digest().value(), expected);
}

TEST_P(OtherDataTest, ResumesWithTheSameDataOnly) {
  const std::string expected = Undisturbed();
  TestCluster cluster(options_);
  WriteRows(100);
  ASSERT_TRUE(cluster.StartChief().ok());
  const int first = cluster.StartWorker();
  while (cluster.chief()->GetStatus().checkpoint().empty()) std::this_thread::yield();
  cluster.KillWorker(first);
  cluster.KillChief();

  WriteRows(101);
  ASSERT_TRUE(cluster.StartChief().ok());
  ExpectRefused(cluster.JoinWorker(cluster.StartWorker()), "worker-1");
  WriteRows(100);
  const int last = cluster.StartWorker();
  EXPECT_TRUE(cluster.Wait().ok());
  EXPECT_TRUE(cluster.JoinWorker(last).ok());
  EXPECT_EQ(cluster.Digest().value(), expected);
}

TEST_P(OtherDataTest, RefusesAChangedFileOfTheSameSize) {
  TestCluster cluster(options_);
  WriteRows(100);
  ASSERT_TRUE(cluster.StartChief().ok());
  const int first = cluster.StartWorker();
  while (cluster.chief()->GetStatus().global_step() < 1) std::this_thread::yield();
  cluster.KillWorker(first);
  std::string text = ReadFile(&data_, kFile).value();
  text[text.size() - 4] ^= 1;  // the last x
  ASSERT_TRUE(WriteFileAtomically(&data_, kFile, text).ok());
  const absl::Status status = cluster.JoinWorker(cluster.StartWorker());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("worker-1 on host-1 reads 100 examples .*, the run 100 examples .*worker-0 on host-0"));
}

TEST_P(OtherDataTest, RefusesAnotherRegisteredInput) {
  auto* source = options_.config.mutable_input()->mutable_split(0)->mutable_registered();
  source->set_name("bytes");
  source->add_file(kFile);
  options_.config.mutable_training()->set_steps(1 << 30);  // must not end before the first worker is killed
  TestCluster cluster(options_);
  ASSERT_TRUE(WriteFileAtomically(&data_, kFile, "some bytes").ok());
  ASSERT_TRUE(cluster.StartChief().ok());
  const int first = cluster.StartWorker();
  while (cluster.chief()->GetStatus().global_step() < 1) std::this_thread::yield();
  cluster.KillWorker(first);
  ASSERT_TRUE(WriteFileAtomically(&data_, kFile, "same bytes").ok());
  const absl::Status status = cluster.JoinWorker(cluster.StartWorker());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("worker-1 on host-1 reads 10 examples .*, the run 10 examples .*worker-0 on host-0"));
}

}  // namespace
}  // namespace lockstep
