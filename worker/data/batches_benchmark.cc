// Measures BatchSource::Get for batches of 64 images of 28 x 28 in memory and in a file, and for synthetic batches.
//   bazel run //worker/data:batches_benchmark
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/addressable_batches.h"
#include "lockstep/worker/data/formats/idx.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

constexpr uint32_t kExamples = 10000;

void GetBatches(benchmark::State& state, absl::StatusOr<std::unique_ptr<Dataset>> dataset,
                const config::v1::InputConfig& config) {
  // Keeps the memory of freed batches in the process, as the worker does.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  CHECK(dataset.ok()) << dataset.status();
  auto source = CreateBatchSource(*std::move(dataset), config, BatchSourceOptions());
  CHECK(source.ok()) << source.status();
  int64_t step = 0;
  for (auto _ : state) CHECK((*source)->Get(step++, 0).ok());
}

void Run(benchmark::State& state, FileSystem* fs, const config::v1::InputConfig& config) {
  DatasetOptions options;
  options.fs = fs;
  GetBatches(state, OpenDataset(config, "", 1, options), config);
}

void Idx(benchmark::State& state, bool gzipped, bool augmented) {
  MemoryFileSystem fs;
  const std::string images = EncodeIdx({kExamples, 28, 28}, std::string(kExamples * 784, 'x'));
  CHECK(WriteFileAtomically(&fs, "images", gzipped ? Gzip(images) : images).ok());
  CHECK(WriteFileAtomically(&fs, "labels", EncodeIdx({kExamples}, std::string(kExamples, 9))).ok());
  config::v1::InputConfig config;
  config.set_batch_size(64);
  config.add_split()->mutable_idx()->set_images("images");
  config.mutable_split(0)->mutable_idx()->set_labels("labels");
  if (augmented) {
    config.mutable_augmentation()->set_flip(true);
    config.mutable_augmentation()->set_crop_padding(2);
  }
  Run(state, &fs, config);
}

// Reads in the same way as from a file larger than IdxArray::kHeldBytes. The file is in the page cache.
void IdxOnDisk(benchmark::State& state) {
  FileSystem* const fs = FileSystem::Real();
  char directory[] = "/tmp/batches_benchmark_XXXXXX";
  CHECK(mkdtemp(directory) != nullptr);
  const std::string images = JoinPath(directory, "images"), labels = JoinPath(directory, "labels");
  CHECK(WriteFileAtomically(fs, images, EncodeIdx({kExamples, 28, 28}, std::string(kExamples * 784, 'x'))).ok());
  CHECK(WriteFileAtomically(fs, labels, EncodeIdx({kExamples}, std::string(kExamples, 9))).ok());
  IdxOptions options;
  options.held_bytes = 0;
  config::v1::InputConfig config;
  config.set_batch_size(64);
  GetBatches(state, OpenIdxDataset(fs, images, labels, options), config);
  for (const std::string& path : {images, labels}) CHECK(fs->Remove(path).ok());
  CHECK_EQ(rmdir(directory), 0);
}

void Synthetic(benchmark::State& state) {
  MemoryFileSystem fs;
  config::v1::InputConfig config;
  config.set_batch_size(64);
  config::v1::InputConfig::Synthetic* synthetic = config.add_split()->mutable_synthetic();
  synthetic->set_examples(kExamples);
  synthetic->set_classes(10);
  synthetic->add_shape(784);
  Run(state, &fs, config);
}

BENCHMARK_CAPTURE(Idx, gzipped, true, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Idx, plain, false, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Idx, augmented, true, true)->Unit(benchmark::kMicrosecond);
BENCHMARK(IdxOnDisk)->Unit(benchmark::kMicrosecond);
BENCHMARK(Synthetic)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lockstep
