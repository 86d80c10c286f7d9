#include "lockstep/server/chief/checkpoint/brought_values.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kId = 7;
constexpr absl::Duration kLong = BroughtValues::kExpiry;

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// The digest of the values {1, 2} of "a" and, unless it is empty, of `b` of "b".
std::string DigestOf(const std::vector<float>& b = {}) {
  VariablesDigest digest;
  digest.Begin("a", v1::DT_FLOAT, {2}, 8);
  digest.AddContent(Bytes({1, 2}));
  if (!b.empty()) {
    digest.Begin("b", v1::DT_FLOAT, {1, 3}, 12);
    digest.AddContent(Bytes(b));
  }
  return digest.Hex();
}

void AddPiece(v1::SetInitialValuesRequest* request, uint32_t variable, uint64_t offset,
              const std::vector<float>& values) {
  v1::TensorPiece* const piece = request->add_value();
  piece->set_variable(variable);
  piece->set_offset(offset);
  piece->set_content(Bytes(values));
}

class BroughtValuesTest : public ::testing::Test {
 protected:
  // The model lists "b" before "a".
  BroughtValuesTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      worker: "w0" incarnation: 3 host: "h"
      model {
        variables { name: "b" dtype: DT_FLOAT shape: 1 shape: 3 trainable: true }
        variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
      }
    )",
                                                              &open_));
    open_.set_initial_values_digest(DigestOf());
    request_.set_session_id(kId);
  }
  absl::StatusOr<uint64_t> Begin() { return values_.Begin(open_, "peer", kId, now_); }
  absl::Status Add() { return values_.Add(request_, "peer", now_); }
  // Adds one piece in a request of its own.
  absl::Status Add(uint32_t variable, uint64_t offset, const std::vector<float>& values, bool end = false) {
    request_.clear_value();
    request_.set_end(end);
    AddPiece(&request_, variable, offset, values);
    return Add();
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  v1::OpenSessionRequest open_;
  v1::SetInitialValuesRequest request_;
  BroughtValues values_;
};

TEST_F(BroughtValuesTest, TakesPiecesInTheOrderOfNames) {
  open_.set_initial_values_digest(DigestOf({3, 4, 5}));
  EXPECT_EQ(Begin().value(), kId);
  EXPECT_TRUE(Add(1, 0, {1}).ok());
  EXPECT_EQ(Begin().value(), kId) << "the worker goes on";
  EXPECT_FALSE(values_.Take()) << "they are incomplete";
  AddPiece(&request_, 1, 1, {2});
  AddPiece(&request_, 0, 0, {3});
  EXPECT_TRUE(Add().ok()) << "the first piece again, then the rest";
  EXPECT_TRUE(Add().ok()) << "all of it again";
  EXPECT_TRUE(Add(0, 1, {4, 5}, /*end=*/true).ok());
  EXPECT_TRUE(Add(0, 1, {4, 5}, /*end=*/true).ok()) << "the last call again";
  EXPECT_EQ(Begin().value(), 0u) << "they are whole";
  const auto whole = values_.Take();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->digest, DigestOf({3, 4, 5}));
  EXPECT_EQ(whole->worker, "w0 on h");
  ASSERT_EQ(whole->values.size(), 2u);
  EXPECT_EQ(whole->values[0].key, "a");
  EXPECT_EQ(whole->values[0].value.bytes(), Bytes({1, 2}));
  EXPECT_EQ(whole->values[1].key, "b");
  EXPECT_EQ(whole->values[1].value.shape(), (Shape{1, 3}));
  EXPECT_EQ(whole->values[1].value.bytes(), Bytes({3, 4, 5}));
  EXPECT_FALSE(values_.Take());
}

TEST_F(BroughtValuesTest, TakesPiecesOfIntegers) {
  const std::vector<int64_t> seen = {1, -2, int64_t{1} << 40};
  const std::string bytes(reinterpret_cast<const char*>(seen.data()), 24);
  VariablesDigest digest;
  digest.Begin("b", v1::DT_INT64, {1, 3}, 24);
  digest.AddContent(bytes);
  open_.set_initial_values_digest(digest.Hex());
  open_.mutable_model()->mutable_variables(0)->set_dtype(v1::DT_INT64);
  const auto add = [&](uint64_t offset, size_t count, v1::DataType dtype) {
    request_.clear_value();
    AddPiece(&request_, 0, offset, {});
    request_.mutable_value(0)->set_content(bytes.substr(offset * 8, count * 8));
    request_.mutable_value(0)->set_dtype(dtype);
    request_.set_end(offset + count == seen.size());
    return Add();
  };
  ASSERT_TRUE(Begin().ok());
  EXPECT_EQ(add(0, 1, v1::DT_FLOAT),
            absl::InvalidArgumentError("a piece of the initial value of b is float32, the variable is int64"));
  ASSERT_TRUE(Begin().ok());
  EXPECT_EQ(add(0, 1, v1::DT_INT64), absl::OkStatus());
  EXPECT_EQ(add(1, 2, v1::DT_INVALID), absl::OkStatus()) << "a piece may leave its type out";
  const auto whole = values_.Take();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->values[0].value.bytes(), bytes);
}

TEST_F(BroughtValuesTest, VariablesMayLackValues) {
  ASSERT_TRUE(Begin().ok());
  EXPECT_TRUE(Add(1, 0, {1, 2}, /*end=*/true).ok());
  EXPECT_EQ(values_.Take()->values.size(), 1u);
}

TEST_F(BroughtValuesTest, OneWorkerAtATimeBringsValues) {
  ASSERT_TRUE(Begin().ok());
  v1::OpenSessionRequest other = open_;
  other.set_worker("w1");
  now_ += kLong - absl::Milliseconds(1);
  const auto busy = values_.Begin(other, "peer", 8, now_);
  EXPECT_TRUE(absl::IsUnavailable(busy.status())) << busy.status();
  EXPECT_THAT(std::string(busy.status().message()), HasSubstr("w0 on h is bringing"));
  other.clear_initial_values_digest();
  EXPECT_TRUE(absl::IsUnavailable(values_.Begin(other, "peer", 0, now_).status())) << "it would declare the run";
  EXPECT_TRUE(absl::IsUnavailable(values_.CheckFree(other, "peer", now_)));
  EXPECT_TRUE(absl::IsUnavailable(values_.CheckFree(open_, "other", now_))) << "another peer";
  ASSERT_TRUE(Add(1, 0, {1}).ok());
  now_ += kLong - absl::Milliseconds(1);
  EXPECT_TRUE(absl::IsUnavailable(values_.Begin(other, "peer", 0, now_).status())) << "each call counts";
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(values_.Begin(other, "peer", 0, now_).value(), 0u);
  EXPECT_TRUE(absl::IsAborted(Add(1, 1, {2}))) << "the values are forgotten";
}

TEST_F(BroughtValuesTest, OnlyTheirWorkerMayAddToThem) {
  EXPECT_TRUE(absl::IsAborted(Add(1, 0, {1, 2}))) << "nothing has begun";
  ASSERT_TRUE(Begin().ok());
  EXPECT_TRUE(absl::IsPermissionDenied(values_.Add(request_, "other", now_)));
  request_.set_session_id(kId + 1);
  EXPECT_TRUE(absl::IsAborted(Add(1, 0, {1, 2})));
  request_.set_session_id(kId);
  EXPECT_TRUE(Add(1, 0, {1, 2}, /*end=*/true).ok()) << "nothing was lost";
}

TEST_F(BroughtValuesTest, NamesBothDigestsIfTheyDiffer) {
  ASSERT_TRUE(Begin().ok());
  ASSERT_TRUE(Add(1, 0, {1, 2}).ok());
  const absl::Status status = Add(0, 0, {3, 4, 5}, /*end=*/true);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), absl::StrCat("the initial values that w0 on h sent have the digest ", DigestOf({3, 4, 5}),
                                           ", it declared ", DigestOf()));
  EXPECT_FALSE(values_.Take());
  EXPECT_EQ(Begin().value(), kId) << "it may begin again";
  EXPECT_TRUE(Add(1, 0, {1, 2}, /*end=*/true).ok());
}

TEST_F(BroughtValuesTest, RefusesPiecesThatDoNotFit) {
  const auto refusal = [this](uint32_t variable, uint64_t offset, const std::vector<float>& values, bool end) {
    EXPECT_TRUE(Begin().ok());
    EXPECT_TRUE(Add(1, 0, {1}).ok());
    const absl::Status status = Add(variable, offset, values, end);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(2, 0, {1}, false), "an initial value of variable 2; the model has 2");
  EXPECT_THAT(refusal(1, 1, {2, 3}, false), HasSubstr("8 bytes at element 1 does not fit into the initial value of a"));
  EXPECT_THAT(refusal(1, ~uint64_t{0}, {2}, false), HasSubstr("does not fit"));
  EXPECT_EQ(refusal(0, 0, {3}, false), "the initial value of a ends after 4 of 8 bytes");
  EXPECT_EQ(refusal(1, 1, {}, true), "the initial value of a ends after 4 of 8 bytes");
  EXPECT_EQ(refusal(1, 2, {}, false), "the initial value of a continues at element 2 after 1");
  ASSERT_TRUE(Begin().ok());
  request_.clear_value();
  AddPiece(&request_, 1, 0, {1});
  request_.mutable_value(0)->mutable_content()->pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(Add())) << "no whole element";
}

}  // namespace
}  // namespace lockstep
