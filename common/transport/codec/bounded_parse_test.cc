#include "lockstep/common/transport/codec/bounded_parse.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// Returns `bytes` n times.
std::string Repeat(const std::string& bytes, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += bytes;
  return all;
}

v1::OpenSessionRequest Request(int variables) {
  v1::OpenSessionRequest request;
  request.set_worker("worker-0@host");
  request.set_incarnation(17);
  for (int i = 0; i < variables; ++i) {
    v1::VariableSpec* const variable = request.mutable_model()->add_variables();
    variable->set_name("some/layer/with/a/long/name/kernel");
    variable->set_dtype(v1::DT_FLOAT);
    for (const int64_t size : {3, 3, 512, 1024}) variable->add_shape(size);
    variable->set_trainable(true);
    variable->mutable_initializer()->mutable_glorot();
  }
  return request;
}

TEST(BoundedParseTest, ParsesMessagesWithinTheLimit) {
  for (const int variables : {0, 1, 1000}) {
    const v1::OpenSessionRequest request = Request(variables);
    const std::string bytes = request.SerializeAsString();
    v1::OpenSessionRequest parsed;
    ASSERT_TRUE(ParseBounded(bytes, 16 * bytes.size() + 64, &parsed).ok());
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(parsed, request));
  }
}

TEST(BoundedParseTest, RefusesMessagesBeyondTheLimit) {
  constexpr int kMany = 100000;
  const std::string model_length("\x1a\xc0\x9a\x0c", 4);  // field 3, 200,000 bytes
  const std::string cases[] = {
      model_length + Repeat(std::string("\x0a\x00", 2), kMany),            // variables
      model_length + Repeat(std::string("\x12\x00", 2), kMany),            // update ops
      std::string("\x1a\xc4\x9a\x0c\x0a\xc0\x9a\x0c", 8) +                 // one variable with
          std::string("\x1a\xbc\x9a\x0c", 4) + std::string(199996, '\1'),  // a packed shape
      Repeat(std::string("\xa2\x06\x00", 3), kMany),                       // unknown strings
      Repeat(std::string("\xa0\x06\x00", 3), kMany),                       // unknown numbers
  };
  for (const std::string& bytes : cases) {
    v1::OpenSessionRequest parsed;
    const absl::Status status = ParseBounded(bytes, 1 << 20, &parsed);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("takes more than 1048576 bytes of memory"));
    EXPECT_EQ(parsed.ByteSizeLong(), 0u) << "nothing was parsed";
  }
  v1::StepRequest step;
  EXPECT_TRUE(absl::IsResourceExhausted(
      ParseBounded(Repeat(std::string("\x32\x02\x1a\x00", 4), kMany), 1 << 20, &step)));  // updates of reports
}

// Returns the number encoded as a protobuf varint.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

// Checks that a message that repeats a field with each number and wire type takes no more memory than the limit.
// protobuf also keeps fields with the wrong wire type, which take memory.
TEST(BoundedParseTest, BoundsEachFieldOfEachWireType) {
  constexpr int kMany = 20000;
  const std::string values[] = {std::string(1, '\0'), std::string(8, '\0'), std::string(1, '\0'), "", "",
                                std::string(4, '\0')};
  for (const google::protobuf::Message* prototype : std::initializer_list<const google::protobuf::Message*>{
           &v1::StepRequest::default_instance(), &v1::SharedMemoryHandle::default_instance(),
           &v1::SlotReport::default_instance(), &v1::OpenSessionRequest::default_instance(),
           &v1::HeartbeatRequest::default_instance(), &v1::VariableSpec::default_instance(),
           &v1::GetRunSpecRequest::default_instance()}) {
    for (uint32_t number = 1; number <= 20; ++number) {
      for (const uint32_t wire_type : {0u, 1u, 2u, 5u}) {
        const std::string bytes = Repeat(Varint(number << 3 | wire_type) + values[wire_type], kMany);
        for (uint64_t limit = 1 << 16; limit <= 16 << 20; limit *= 4) {
          const std::unique_ptr<google::protobuf::Message> parsed(prototype->New());
          const absl::Status status = ParseBounded(bytes, limit, parsed.get());
          EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
          EXPECT_LE(parsed->SpaceUsedLong(), status.ok() ? limit : 1000)
              << prototype->GetTypeName() << " field " << number << " wire type " << wire_type;
        }
      }
    }
  }
}

TEST(BoundedParseTest, RefusesInvalidMessages) {
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string("\x1a\x05\x0a", 3), std::string("\x0b"),
                                   std::string(100, '\xff'), std::string("\x1a\x02\x0a\x05", 4)}) {
    for (const uint64_t limit : {400, 100000}) {
      v1::OpenSessionRequest parsed;
      const absl::Status status = ParseBounded(bytes, limit, &parsed);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("the bytes are no OpenSessionRequest"));
    }
  }
}

}  // namespace
}  // namespace lockstep
