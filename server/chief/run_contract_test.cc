#include "server/chief/run_contract.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

OpenSessionRequest Request(const std::string& text) {
  OpenSessionRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return request;
}

constexpr char kModel[] = "model { variables { name: 'w' dtype: DT_FLOAT shape: 3 trainable: true } } ";
constexpr char kData[] = "data { examples: 5 crc32c: 0x1234 } ";

std::string Refusal(const RunContract& contract, const OpenSessionRequest& request) {
  const absl::Status status = contract.Check(request);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  return std::string(status.message());
}

TEST(RunContractTest, AdmitsWhoHasTheSameModelAndData) {
  const RunContract contract(Request(absl::StrCat("worker: 'a' ", kModel, kData)));
  EXPECT_TRUE(contract.knows_data());
  EXPECT_TRUE(contract.Check(Request(absl::StrCat("worker: 'b' incarnation: 7 ", kModel, kData))).ok());
  const RunContract without(Request(kModel));
  EXPECT_TRUE(without.knows_data());
  EXPECT_TRUE(without.Check(Request(kModel)).ok());
}

TEST(RunContractTest, NamesWorkerAndWhatDiffers) {
  const RunContract contract(Request(absl::StrCat(kModel, kData)));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' ", kModel, "data { examples: 6 crc32c: 0x1234 }"))),
              HasSubstr("b reads 6 examples with CRC32C 00001234, the run 5 examples with CRC32C 00001234"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' ", kModel))), HasSubstr("b reads none, the run 5"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b\\n' ", kData,
                                                     "model { variables { name: 'w' dtype: DT_FLOAT shape: 4 } }"))),
              HasSubstr("variables[0].shape[0]: 3 -> 4 in b\\n"));
}

TEST(RunContractTest, ADifferenceIsShortHoweverLongTheNamesAre) {
  const RunContract contract(Request(kModel));
  OpenSessionRequest request = Request(kModel);
  request.mutable_model()->mutable_variables(0)->set_name(std::string(1 << 20, 'x'));
  EXPECT_LT(Refusal(contract, request).size(), 2000u);
}

TEST(RunContractTest, GoesThroughTheRecord) {
  for (const char* data : {kData, ""}) {
    RunRecord record;
    RunContract(Request(absl::StrCat(kModel, data))).FillRecord(&record);
    const RunContract contract(record);
    EXPECT_TRUE(contract.knows_data());
    EXPECT_TRUE(contract.Check(Request(absl::StrCat(kModel, data))).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(contract.Check(Request(absl::StrCat(kModel, "data { examples: 1 }")))));
  }
}

TEST(RunContractTest, ARecordThatLacksTheDataOfItsInputMatchesAny) {
  RunRecord record;
  RunContract(Request(kModel)).FillRecord(&record);
  record.mutable_config()->mutable_input()->add_split()->set_name("train");
  const RunContract contract(record);
  EXPECT_FALSE(contract.knows_data());
  EXPECT_TRUE(contract.Check(Request(absl::StrCat(kModel, kData))).ok());
  EXPECT_TRUE(contract.Check(Request(kModel)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(contract.Check(Request(kData))));
}

}  // namespace
}  // namespace lockstep
