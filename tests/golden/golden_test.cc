// Reads files written by TensorFlow (make_golden.py), and writes the same contents with identical bytes.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

std::string Golden(absl::string_view name) { return JoinPath("tests/golden", name); }

std::unique_ptr<BundleReader> Open(absl::string_view name) {
  return BundleReader::Open(FileSystem::Real(), Golden(name)).value();
}

struct Variable {
  std::string name;
  v1::DataType dtype;
  Shape shape;
};

// Returns the list BUNDLE of make_golden.py.
std::vector<Variable> Bundle() {
  return {
      {"bfloat16", v1::DT_BFLOAT16, {3}},
      {"bool", v1::DT_BOOL, {5}},
      {"empty", v1::DT_FLOAT, {0, 4}},
      {"float16", v1::DT_HALF, {3}},
      {"float32", v1::DT_FLOAT, {2, 3}},
      {"float64", v1::DT_DOUBLE, {2, 2}},
      {"global_step", v1::DT_INT64, {}},
      {"hidden1/kernel", v1::DT_FLOAT, {4, 5}},
      {"hidden1/kernel/Momentum", v1::DT_FLOAT, {4, 5}},
      {"int16", v1::DT_INT16, {3}},
      {"int32", v1::DT_INT32, {3}},
      {"int8", v1::DT_INT8, {3}},
      {"uint16", v1::DT_UINT16, {3}},
      {"uint32", v1::DT_UINT32, {3}},
      {"uint64", v1::DT_UINT64, {3}},
      {"uint8", v1::DT_UINT8, {3}},
  };
}

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Returns element i: i % 100 + 1, or i % 2 == 0 for booleans.
std::string Element(v1::DataType dtype, int64_t i) {
  const int64_t value = i % 100 + 1;
  // The bit patterns of 1, 2, 3.
  const uint16_t kBfloat16[] = {0x3f80, 0x4000, 0x4040};
  const uint16_t kHalf[] = {0x3c00, 0x4000, 0x4200};
  switch (dtype) {
    case v1::DT_BFLOAT16:
      return BytesOf(kBfloat16[i]);
    case v1::DT_HALF:
      return BytesOf(kHalf[i]);
    case v1::DT_BOOL:
      return BytesOf<uint8_t>(i % 2 == 0);
    case v1::DT_FLOAT:
      return BytesOf<float>(value);
    case v1::DT_DOUBLE:
      return BytesOf<double>(value);
    default:
      return BytesOf(value).substr(0, SizeOf(dtype));
  }
}

std::string Content(const Variable& variable) {
  std::string content;
  for (int64_t i = 0; i < variable.shape.num_elements(); ++i) content += Element(variable.dtype, i);
  return content;
}

TEST(GoldenBundleTest, IsReadWithEveryType) {
  const auto reader = Open("bundle/model.ckpt-7");
  std::vector<std::string> names;
  for (const Variable& variable : Bundle()) {
    names.push_back(variable.name);
    const auto tensor = reader->Read(variable.name);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), variable.dtype) << variable.name;
    EXPECT_EQ(tensor->shape(), variable.shape) << variable.name;
    EXPECT_EQ(tensor->bytes(), Content(variable)) << variable.name;
  }
  EXPECT_EQ(reader->names(), names);
  EXPECT_TRUE(reader->Verify().ok());
}

TEST(GoldenBundleTest, IsWrittenInTheSameBytes) {
  MemoryFileSystem fs;
  auto writer = BundleWriter::Create(&fs, "model.ckpt-7").value();
  for (const Variable& variable : Bundle()) {
    ASSERT_TRUE(writer->Add(variable.name, variable.dtype, variable.shape, Content(variable)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  for (const char* name : {"model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001"}) {
    EXPECT_EQ(ReadFile(&fs, name).value(), ReadFile(FileSystem::Real(), Golden(absl::StrCat("bundle/", name))).value())
        << name;
  }
}

// The digest must never change, unless the definition in digest.h does.
TEST(GoldenBundleTest, HasTheSameDigestForEver) {
  EXPECT_EQ(CheckpointDigest(*Open("bundle/model.ckpt-7")).value(),
            "2a258da4642b0564ef5870464e00e16d24e71a1023c0b686330dda81ee53be1d");
}

TEST(GoldenPartitionedTest, IsReadWhole) {
  const auto reader = Open("partitioned/model.ckpt-7");
  EXPECT_THAT(reader->names(), ElementsAre("columns", "rows", "step"));
  for (const Variable& variable :
       {Variable{"columns", v1::DT_FLOAT, {3, 5}}, Variable{"rows", v1::DT_INT8, {9000, 1}}}) {
    const auto tensor = reader->Read(variable.name);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), variable.dtype);
    EXPECT_EQ(tensor->shape(), variable.shape);
    EXPECT_EQ(tensor->bytes(), Content(variable)) << variable.name;
  }
  EXPECT_EQ(reader->Read("step")->flat<int64_t>()[0], 7);
  EXPECT_TRUE(reader->Verify().ok());
}

TEST(GoldenObjectGraphTest, IsReadBesideItsStrings) {
  const auto reader = Open("object_graph/ckpt-1");
  EXPECT_THAT(reader->names(), ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                                           "v/.ATTRIBUTES/VARIABLE_VALUE"));
  EXPECT_TRUE(reader->Verify().ok()) << reader->Verify();
  EXPECT_THAT(reader->Read("v/.ATTRIBUTES/VARIABLE_VALUE")->flat<float>(), ElementsAre(1, 2));
  EXPECT_EQ(reader->Describe("_CHECKPOINTABLE_OBJECT_GRAPH")->dtype, v1::DT_STRING);
  EXPECT_EQ(reader->Read("_CHECKPOINTABLE_OBJECT_GRAPH").status().code(), absl::StatusCode::kUnimplemented);
}

TEST(GoldenEventsTest, AreWrittenInTheSameBytes) {
  MemoryFileSystem fs;
  SimulatedClock clock;
  const auto writer = EventWriter::Create(&fs, &clock, "logs", "host").value();
  clock.Advance(absl::Milliseconds(500));
  writer->WriteSessionLog(v1::SessionLog::START, 3);
  clock.Advance(absl::Milliseconds(500));
  writer->WriteScalar("loss", 0.25, 3);

  v1::Event event;
  event.set_wall_time(1577836802);
  event.set_step(4);
  v1::Summary::Value* const weights = event.mutable_summary()->add_value();
  weights->set_tag("weights");
  v1::HistogramProto* const histogram = weights->mutable_histo();
  histogram->set_min(-1);
  histogram->set_max(2);
  histogram->set_num(4);
  histogram->set_sum(1.5);
  histogram->set_sum_squares(5.25);
  for (const double limit : {-1.0, 0.0, 0.5, 2.0}) {
    histogram->add_bucket_limit(limit);
    histogram->add_bucket(1);
  }
  writer->Write(event);
  clock.Advance(absl::Seconds(2));
  writer->WriteSessionLog(v1::SessionLog::CHECKPOINT, 4, "logdir/model.ckpt-4");
  clock.Advance(absl::Seconds(1));
  writer->WriteSessionLog(v1::SessionLog::STOP, 5);
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(ReadFile(&fs, writer->path()).value(), ReadFile(FileSystem::Real(), Golden("events")).value());
}

}  // namespace
}  // namespace lockstep
