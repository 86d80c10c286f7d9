#include "lockstep/worker/session/initial_values.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

Tensor Values(int64_t count, float first = 0) {
  Tensor tensor(v1::DT_FLOAT, {count});
  for (float& value : tensor.flat<float>()) value = first++;
  return tensor;
}

class InitialValuesTest : public ::testing::Test {
 protected:
  InitialValuesTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "z" shape: 700000 }
      variables { name: "b" shape: 2 }
      variables { name: "a" shape: 1 }
    )",
                                                              &model_));
    session_.set_session_id(7);
    session_.set_generation(3);
  }

  FakeChiefClient client_;
  v1::ModelSpec model_;
  v1::OpenSessionReply session_;
  std::atomic<bool> stop_{false};
};

TEST_F(InitialValuesTest, DigestIsTheDocumentedOne) {
  EXPECT_EQ(InitialValues({{"w", Values(2, 1)}}).digest(),
            "9987ae2673e14109853de13bba42eb8f50038c5dbcc87a817906638a3d60b153");
}

TEST_F(InitialValuesTest, SendsOneVariableAfterTheOther) {
  const InitialValues values({{"z", Values(700000)}, {"b", Values(2, 5)}});
  ASSERT_TRUE(values.Send(model_, session_, stop_, &client_).ok());
  const auto requests = client_.calls().initial_values;
  ASSERT_EQ(requests.size(), 3u) << "2.8 MB";
  std::string b, z;
  for (const v1::SetInitialValuesRequest& request : requests) {
    EXPECT_EQ(request.session_id(), 7u);
    EXPECT_EQ(request.generation(), 3);
    EXPECT_LE(request.ByteSizeLong(), 1u << 20);
    for (const v1::TensorPiece& piece : request.value()) {
      std::string* const received = piece.variable() == 0 ? &z : &b;
      EXPECT_EQ(piece.offset() * sizeof(float), received->size());
      EXPECT_TRUE(piece.variable() == 0 || z.empty()) << "the names are in order";
      *received += piece.content();
    }
  }
  EXPECT_FALSE(requests[0].end() || requests[1].end());
  EXPECT_TRUE(requests[2].end());
  EXPECT_EQ(b, Values(2, 5).bytes());
  EXPECT_EQ(z, Values(700000).bytes());
}

TEST_F(InitialValuesTest, SendsIntegersWithTheirType) {
  constexpr int64_t kCount = 200000;
  Tensor counts(v1::DT_INT64, {kCount});
  for (int64_t i = 0; i < kCount; ++i) counts.flat<int64_t>()[i] = i;
  const InitialValues values({{"b", Values(2)}, {"z", counts}});
  ASSERT_TRUE(values.Send(model_, session_, stop_, &client_).ok());
  std::string received;
  for (const v1::SetInitialValuesRequest& request : client_.calls().initial_values) {
    EXPECT_LE(request.ByteSizeLong(), 1u << 20);
    for (const v1::TensorPiece& piece : request.value()) {
      EXPECT_EQ(piece.dtype(), piece.variable() == 0 ? v1::DT_INT64 : v1::DT_INVALID);
      if (piece.variable() != 0) continue;
      EXPECT_EQ(piece.offset() * sizeof(int64_t), received.size());
      received += piece.content();
    }
  }
  EXPECT_EQ(received, counts.bytes());
}

TEST_F(InitialValuesTest, EndsWithTheFirstError) {
  client_.set_initial_values = {absl::OkStatus(), absl::AbortedError("forgotten")};
  const InitialValues values({{"z", Values(700000)}});
  EXPECT_TRUE(absl::IsAborted(values.Send(model_, session_, stop_, &client_)));
  EXPECT_EQ(client_.calls().initial_values.size(), 2u);
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(values.Send(model_, session_, stop_, &client_)));
  EXPECT_EQ(client_.calls().initial_values.size(), 2u);
}

TEST_F(InitialValuesTest, NamesAValueOfNoVariable) {
  const absl::Status status = InitialValues({{"c", Values(1)}}).Send(model_, session_, stop_, &client_);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("c, which is no variable"));
}

}  // namespace
}  // namespace lockstep
