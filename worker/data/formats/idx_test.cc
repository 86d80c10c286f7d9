#include "lockstep/worker/data/formats/idx.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IdxTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& contents) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, path, contents).ok());
  }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(uint64_t held_bytes = IdxArray::kHeldBytes) {
    IdxOptions options;
    options.held_bytes = held_bytes;
    return OpenIdxDataset(&fs_, "images", "labels", options);
  }

  // Expects opening to fail with DataLoss and a message that contains `text`.
  void ExpectDataLoss(const std::string& text) {
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  // Three images of 2 x 2 pixels.
  const std::string images_ = EncodeIdx({3, 2, 2}, std::string("\x00\x33\x66\x99\xff\x01\x02\x03\x04\x05\x06\x07", 12));
  const std::string labels_ = EncodeIdx({3}, std::string("\x02\x00\x01", 3));
  MemoryFileSystem fs_;
};

TEST_F(IdxTest, ReadsPlainAndGzippedFilesAlike) {
  for (const bool gzipped : {false, true}) {
    Write("images", gzipped ? Gzip(images_) : images_);
    Write("labels", gzipped ? labels_ : Gzip(labels_));
    auto dataset = Open(/*held_bytes=*/0);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->size(), 3);
    EXPECT_EQ((*dataset)->spec().features_shape, Shape({2, 2, 1}));
    EXPECT_EQ((*dataset)->spec().features_dtype, v1::DT_FLOAT);
    EXPECT_EQ((*dataset)->spec().labels_dtype, v1::DT_INT32);
    EXPECT_EQ((*dataset)->spec().classes, 3);
    Batch batch;
    ASSERT_TRUE((*dataset)->Read({1, 0, 1}, &batch).ok());
    EXPECT_EQ(batch.size, 3);
    EXPECT_EQ(batch.features.shape(), Shape({3, 2, 2, 1}));
    EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1.0f, 1 / 255.0f, 2 / 255.0f, 3 / 255.0f, 0.0f, 0.2f, 0.4f,
                                                          0.6f, 1.0f, 1 / 255.0f, 2 / 255.0f, 3 / 255.0f));
    EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(0, 2, 0));
    EXPECT_EQ(batch.weights.num_elements(), 0);
  }
}

TEST_F(IdxTest, ReadsRunsAlikeFromMemoryAndDisk) {
  const int64_t examples = 40;
  std::string pixels, classes;
  for (int64_t i = 0; i < examples; ++i) {
    for (int64_t pixel = 0; pixel < 6; ++pixel) pixels.push_back(static_cast<char>(i * 6 + pixel));
    classes.push_back(static_cast<char>(i));
  }
  Write("images", EncodeIdx({examples, 2, 3}, pixels));
  Write("labels", EncodeIdx({examples}, classes));
  const std::vector<int64_t> indices = {5, 6, 7, 39, 0, 1, 1, 2, 9, 8, 38, 39};
  for (const uint64_t held_bytes : {uint64_t{0}, IdxArray::kHeldBytes}) {
    auto dataset = Open(held_bytes);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    Batch batch;
    ASSERT_TRUE((*dataset)->Read(indices, &batch).ok());
    for (size_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(batch.labels.flat<int32_t>()[i], indices[i]);
      for (int64_t pixel = 0; pixel < 6; ++pixel) {
        EXPECT_FLOAT_EQ(batch.features.flat<float>()[i * 6 + pixel], (indices[i] * 6 + pixel) / 255.0f);
      }
    }
  }
}

// Changes the file while it is in use, as overwriting it with `cp` does.
TEST_F(IdxTest, NoticesAnImageOnDiskThatHasChanged) {
  for (const bool kept : {false, true}) {
    Write("images", images_);
    Write("labels", labels_);
    IdxOptions options;
    options.held_bytes = 0;
    options.checksum.directory = "index";
    // The second time the dataset is opened, the checksums come from the directory.
    const int opens = kept ? 2 : 1;
    for (int i = 1; i < opens; ++i) ASSERT_TRUE(OpenIdxDataset(&fs_, "images", "labels", options).ok());
    auto dataset = OpenIdxDataset(&fs_, "images", "labels", options);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    Batch batch;
    ASSERT_TRUE((*dataset)->Read({0, 1, 2}, &batch).ok());
    for (size_t byte = 16; byte < images_.size(); ++byte) {
      fs_.FlipBits("images", byte, 1);
      const int64_t changed = static_cast<int64_t>(byte - 16) / 4;
      // Reads the image together with others, then alone.
      for (const std::vector<int64_t>& indices : {std::vector<int64_t>{0, 1, 2}, std::vector<int64_t>{changed}}) {
        const absl::Status status = (*dataset)->Read(indices, &batch);
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("images: example ", changed, " at byte ",
                                                                          16 + 4 * changed, " is no longer")));
      }
      // The others are unchanged.
      EXPECT_TRUE((*dataset)->Read({(changed + 1) % 3, (changed + 2) % 3}, &batch).ok());
      fs_.FlipBits("images", byte, 1);
    }
    EXPECT_TRUE((*dataset)->Read({0, 1, 2}, &batch).ok());
  }
}

// OutOfRange would be taken for the end of the input and would end the run.
TEST_F(IdxTest, ImagesOnDiskThatAreCutOffAreLost) {
  Write("images", images_);
  Write("labels", labels_);
  auto dataset = Open(/*held_bytes=*/0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  fs_.Truncate("images", 20);
  Batch batch;
  EXPECT_TRUE((*dataset)->Read({0}, &batch).ok());
  const absl::Status status = (*dataset)->Read({1}, &batch);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("images: it ends at byte 20"));
}

// These images stay in memory, because their checksums would take more memory than the images.
TEST_F(IdxTest, HoldsImagesSmallerThanTheirChecksums) {
  Write("images", EncodeIdx({3, 1, 3}, "abcdefghi"));
  Write("labels", labels_);
  auto dataset = Open(/*held_bytes=*/0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  fs_.FlipBits("images", 16, 1);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0}, &batch).ok());
  EXPECT_FLOAT_EQ(batch.features.flat<float>()[0], 'a' / 255.0f);
}

TEST_F(IdxTest, InflatesMembersThatFollowEachOther) {
  Write("images", Gzip(images_.substr(0, 7)) + Gzip("") + Gzip(images_.substr(7)));
  Write("labels", labels_);
  EXPECT_TRUE(Open().ok()) << Open().status();
}

TEST_F(IdxTest, ReadsFourDimensionsAsChannels) {
  Write("images", EncodeIdx({2, 1, 2, 3}, "abcdefghijkl"));
  Write("labels", EncodeIdx({2}, "ab"));
  auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().features_shape, Shape({1, 2, 3}));
  EXPECT_EQ((*dataset)->spec().classes, 'b' + 1);
}

TEST_F(IdxTest, NamesTheExampleThatDoesNotExist) {
  Write("images", images_);
  Write("labels", labels_);
  auto dataset = Open();
  Batch batch;
  const absl::Status status = (*dataset)->Read({0, 3}, &batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("example 3 of a split with 3"));
  EXPECT_EQ((*dataset)->Read({-1}, &batch).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IdxTest, NamesTheFileThatIsMissing) {
  Write("labels", labels_);
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("images"));
}

TEST_F(IdxTest, NamesTheExpectationOfADamagedFile) {
  Write("labels", labels_);
  Write("images", "");
  ExpectDataLoss("images: ends after 0 bytes");
  Write("images", "hello");
  ExpectDataLoss("images: starts with 68 65 6c 6c, expected 00 00 08 03");
  Write("images", "version https://git-lfs.github.com/spec/v1\n");
  ExpectDataLoss("images: no IDX array; it is a pointer of Git LFS");
  Write("images", labels_);
  ExpectDataLoss("expected 00 00 08 03");
  Write("images", images_.substr(0, 10));
  ExpectDataLoss("images: ends after 10 bytes, the header has 16");
  Write("images", images_.substr(0, 20));
  ExpectDataLoss("images: an array of 3 x 2 x 2 bytes expected, 4 bytes follow");
  Write("images", images_ + "x");
  ExpectDataLoss("13 bytes follow");
  Write("images", Gzip(images_ + "x"));
  ExpectDataLoss("13 bytes follow");
  Write("images", Gzip(images_.substr(0, 20)));
  ExpectDataLoss("4 bytes follow");
  Write("images", EncodeIdx({0, 2, 2}, ""));
  ExpectDataLoss("dimension 0 of the array is 0");
  Write("images", EncodeIdx({2, 2, 2}, "12345678"));
  ExpectDataLoss("images holds 2 images, labels holds 3 labels");
}

TEST_F(IdxTest, NoticesADamagedGzipFile) {
  Write("labels", labels_);
  const std::string whole = Gzip(images_);
  Write("images", whole.substr(0, whole.size() - 3));
  ExpectDataLoss("images: the compressed file ends early");
  // Damages the checksum in the trailer.
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;
  Write("images", damaged);
  ExpectDataLoss("images: does not inflate");
}

TEST_F(IdxTest, ReservesNoMemoryForAGreatLie) {
  Write("labels", labels_);
  Write("images", Gzip(EncodeIdx({0xffff, 0xffff, 0xffff}, "x")));
  ExpectDataLoss("cannot be in a compressed file");
  Write("images", EncodeIdx({0xffffffff, 0xffffffff, 0xffffffff}, "x"));
  ExpectDataLoss("dimension 1 of the array is 4294967295");
}

// Truncations and changed bytes result in an error or a dataset, never in a crash.
TEST_F(IdxTest, SurvivesHostileBytes) {
  const Philox philox(1, 2);
  for (const bool gzipped : {false, true}) {
    const std::string images = gzipped ? Gzip(images_) : images_;
    const std::string labels = gzipped ? Gzip(labels_) : labels_;
    int opened = 0;
    for (int trial = 0; trial < 3000; ++trial) {
      std::string bytes = trial % 2 == 0 ? images : labels;
      const Philox::Block block = philox.At(trial);
      if (block[0] % 4 == 0) bytes.resize(block[1] % bytes.size());
      for (uint32_t flips = block[2] % 3; flips > 0 && !bytes.empty(); --flips) {
        bytes[(block[3] >> 8 * flips) % bytes.size()] ^= 1 << block[flips] % 8;
      }
      Write("images", trial % 2 == 0 ? bytes : images);
      Write("labels", trial % 2 == 0 ? labels : bytes);
      auto dataset = Open();
      if (!dataset.ok()) {
        EXPECT_EQ(dataset.status().code(), absl::StatusCode::kDataLoss) << dataset.status();
        continue;
      }
      ++opened;
      Batch batch;
      EXPECT_TRUE((*dataset)->Read({(*dataset)->size() - 1}, &batch).ok());
    }
    EXPECT_GT(opened, 100);
    EXPECT_LT(opened, 2900);
  }
}

TEST_F(IdxTest, TheDigestIgnoresWhereTheBytesLie) {
  Write("images", images_);
  Write("labels", labels_);
  const v1::DataDigest in_memory = (*Open())->digest();
  EXPECT_EQ(in_memory.examples(), 3);
  EXPECT_EQ((*Open(/*held_bytes=*/0))->digest().crc32c(), in_memory.crc32c());
  Write("images", Gzip(images_));
  Write("labels", Gzip(labels_));
  EXPECT_EQ((*Open())->digest().crc32c(), in_memory.crc32c());
}

TEST_F(IdxTest, EveryByteOfBothFilesIsInTheDigest) {
  for (const uint64_t held_bytes : {uint64_t{0}, IdxArray::kHeldBytes}) {
    Write("images", images_);
    Write("labels", labels_);
    std::set<uint32_t> digests = {(*Open(held_bytes))->digest().crc32c()};
    for (size_t i = 16; i < images_.size(); ++i) {
      std::string changed = images_;
      changed[i] ^= 1;
      Write("images", changed);
      EXPECT_TRUE(digests.insert((*Open(held_bytes))->digest().crc32c()).second) << "pixel " << i - 16;
    }
    Write("images", images_);
    for (size_t i = 8; i < labels_.size(); ++i) {
      std::string changed = labels_;
      changed[i] ^= 1;
      Write("labels", changed);
      EXPECT_TRUE(digests.insert((*Open(held_bytes))->digest().crc32c()).second) << "label " << i - 8;
    }
    Write("labels", labels_);
    // Stores the same bytes as images of another shape.
    Write("images", EncodeIdx({3, 4, 1}, images_.substr(16)));
    EXPECT_TRUE(digests.insert((*Open(held_bytes))->digest().crc32c()).second);
  }
}

TEST_F(IdxTest, NormalizesPixels) {
  Write("images", images_);
  Write("labels", labels_);
  config::v1::InputConfig::Normalization config;
  config.set_mean(0.5f);
  config.set_stddev(0.25f);
  IdxOptions options;
  options.normalization = *Normalization::Create(config);
  auto dataset = OpenIdxDataset(&fs_, "images", "labels", options);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0}, &batch).ok());
  EXPECT_EQ(batch.features.flat<float>()[0], -2.0f);
  EXPECT_EQ(batch.features.flat<float>()[1], (0.2f - 0.5f) / 0.25f);
}

}  // namespace
}  // namespace lockstep
