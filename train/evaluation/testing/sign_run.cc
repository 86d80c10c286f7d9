#include "lockstep/train/evaluation/testing/sign_run.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

constexpr char kConfig[] = R"(
  model { layer { name: "logits" dense { units: 2 no_bias: true } } loss { softmax_cross_entropy {} } }
  input {
    split { name: "train" csv { file: "/data/test.csv" column { name: "x" } column { name: "y" type: LABEL } } }
    split { name: "test" csv { file: "/data/test.csv" column { name: "x" } column { name: "y" type: LABEL } } }
    batch_size: 2
  }
  optimizer { sgd {} learning_rate { initial: 0.1 } }
  training { steps: 10 }
  evaluation { metric: "accuracy" })";

constexpr char kData[] = "x,y\n1,1\n-1,0\n2,1\n-2,1\n";

absl::string_view BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

config::v1::RunSpec SignRunSpec() {
  config::v1::RunSpec config;
  CHECK_EQ(ParseTextProto(kConfig, "sign run", &config), absl::OkStatus());
  ApplyDefaults(&config);
  return config;
}

void RecordSignRun(FileSystem* fs, const std::string& logdir, const config::v1::RunSpec& config) {
  v1::RunRecord record;
  *record.mutable_config() = config;
  CHECK_EQ(fs->CreateDirectory("/data"), absl::OkStatus());
  CHECK_EQ(WriteFileAtomically(fs, "/data/test.csv", kData), absl::OkStatus());
  CHECK_EQ(fs->CreateDirectory(logdir), absl::OkStatus());
  CHECK_EQ(WriteRunRecord(fs, logdir, record), absl::OkStatus());
}

void SaveSignCheckpoint(FileSystem* fs, const std::string& logdir, int64_t step, float w) {
  const std::string prefix = JoinPath(logdir, absl::StrCat("model.ckpt-", step));
  auto writer = BundleWriter::Create(fs, prefix);
  CHECK_EQ(writer.status(), absl::OkStatus());
  // The output for class 0 is 0, and the output for class 1 is w * x.
  CHECK_EQ((*writer)->Add("logits/kernel", v1::DT_FLOAT, Shape({1, 2}), BytesOf({0, w})), absl::OkStatus());
  CHECK_EQ((*writer)->Add("global_step", v1::DT_INT64, Shape({}), {reinterpret_cast<const char*>(&step), sizeof step}),
           absl::OkStatus());
  CHECK_EQ((*writer)->Finish(), absl::OkStatus());
  CHECK_EQ(WriteCheckpointState(fs, logdir, prefix, {prefix}), absl::OkStatus());
}

}  // namespace lockstep
