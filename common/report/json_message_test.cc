#include "lockstep/common/report/json_message.h"

#include <limits>

#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {
namespace {

v1::RunStatus ExampleStatus() {
  v1::RunStatus status;
  status.set_phase(v1::RunStatus::TRAINING);
  status.set_global_step(int64_t{1} << 40);
  status.set_loss(0.1);
  status.set_message("a \"quoted\"\nline");
  status.add_worker()->set_name("worker-0");
  status.add_worker()->set_backup(true);
  return status;
}

TEST(JsonMessageTest, NumbersAreNumbers) {
  EXPECT_EQ(JsonMessage(ExampleStatus()),
            "{\"phase\":\"TRAINING\",\"global_step\":1099511627776,\"loss\":0.1,"
            "\"worker\":[{\"name\":\"worker-0\"},{\"backup\":true}],\"message\":\"a \\\"quoted\\\"\\u000aline\"}");
}

TEST(JsonMessageTest, ProtobufReadsIt) {
  for (const bool defaults : {false, true}) {
    JsonMessageOptions options;
    options.defaults = options.lines = defaults;
    v1::RunStatus read;
    const auto status = google::protobuf::util::JsonStringToMessage(JsonMessage(ExampleStatus(), options), &read);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(read, ExampleStatus()));
  }
}

TEST(JsonMessageTest, DefaultsAreWrittenOnRequest) {
  JsonMessageOptions options;
  options.defaults = true;
  const std::string json = JsonMessage(v1::WorkerStatus(), options);
  EXPECT_NE(json.find("\"accepted\":0"), std::string::npos) << json;
  EXPECT_EQ(json.find("\"stream\""), std::string::npos) << "absent fields stay absent: " << json;
}

TEST(JsonMessageTest, NonFiniteNumbersAreNull) {
  v1::RunStatus status;
  status.set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(JsonMessage(status), "{\"loss\":null}");
}

}  // namespace
}  // namespace lockstep
