#include "lockstep/server/chief/run/run_contract.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

v1::OpenSessionRequest Request(const std::string& text) {
  v1::OpenSessionRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return request;
}

constexpr char kModel[] = "model { variables { name: 'w' dtype: DT_FLOAT shape: 3 trainable: true } } ";
constexpr char kData[] = "data { examples: 5 crc32c: 0x1234 } ";

std::string Refusal(const RunContract& contract, const v1::OpenSessionRequest& request) {
  const absl::Status status = contract.Check(request);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  return std::string(status.message());
}

TEST(RunContractTest, AdmitsWhoHasTheSameModelAndData) {
  const RunContract contract(Request(absl::StrCat("worker: 'a' ", kModel, kData)));
  EXPECT_TRUE(contract.Check(Request(absl::StrCat("worker: 'b' incarnation: 7 ", kModel, kData))).ok());
  const RunContract without(Request(kModel));
  EXPECT_TRUE(without.Check(Request(kModel)).ok());
}

TEST(RunContractTest, NamesWorkerAndWhatDiffers) {
  const RunContract contract(Request(absl::StrCat("worker: 'a' host: 'x' ", kModel, kData)));
  EXPECT_THAT(
      Refusal(contract, Request(absl::StrCat("worker: 'b' ", kModel, "data { examples: 6 crc32c: 0x1234 }"))),
      HasSubstr("b reads 6 examples with CRC32C 00001234, the run 5 examples with CRC32C 00001234, as a on x does"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' ", kModel))), HasSubstr("b reads none, the run 5"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b\\n' ", kData,
                                                     "model { variables { name: 'w' dtype: DT_FLOAT shape: 4 } }"))),
              HasSubstr("variable 1 is \"w\" (4) in b\\n, \"w\" (3) in a on x"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' ", kData))),
              HasSubstr("variable 1 is none in b, \"w\" (3) in a on x"));
  v1::OpenSessionRequest more = Request(absl::StrCat("worker: 'b' ", kModel, kData));
  more.mutable_model()->add_variables()->set_name("v");
  EXPECT_THAT(Refusal(contract, more), HasSubstr("variable 2 is \"v\" () in b, none in a on x"));

  constexpr char kAverage[] = "update_ops { variable: 'v' kind: MOVING_AVERAGE decay: 0.5 ";
  const auto with = [&](const char* zero_debias) {
    return Request(absl::StrCat("worker: 'b' ", kData, "model { variables { name: 'v' dtype: DT_FLOAT } ", kAverage,
                                zero_debias, "} }"));
  };
  EXPECT_THAT(Refusal(RunContract(with("")), with("zero_debias: true")), HasSubstr("zero_debias"));
}

TEST(RunContractTest, ADifferenceIsShortHoweverLongTheNamesAre) {
  const RunContract contract(Request(kModel));
  v1::OpenSessionRequest request = Request(kModel);
  request.mutable_model()->mutable_variables(0)->set_name(std::string(1 << 20, 'x'));
  EXPECT_LT(Refusal(contract, request).size(), 2000u);
}

TEST(RunContractTest, GoesThroughTheRecord) {
  for (const char* data : {kData, ""}) {
    v1::RunRecord record;
    RunContract(Request(absl::StrCat(kModel, data))).FillRecord(&record);
    const RunContract contract(record);
    EXPECT_TRUE(contract.Check(Request(absl::StrCat(kModel, data))).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(contract.Check(Request(absl::StrCat(kModel, "data { examples: 1 }")))));
  }
}

TEST(RunContractTest, ARecordThatLacksTheDataOfItsInputMatchesAny) {
  v1::RunRecord record;
  RunContract(Request(kModel)).FillRecord(&record);
  record.mutable_config()->mutable_input()->add_split()->set_name("train");
  const RunContract contract(record);
  EXPECT_TRUE(contract.Lacks(Request(kModel)));
  EXPECT_TRUE(contract.Check(Request(absl::StrCat(kModel, kData))).ok());
  EXPECT_TRUE(contract.Check(Request(kModel)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(contract.Check(Request(kData))));
}

constexpr char kParts[] = "model_part { name: 'layer 0' digest: 1 } model_part { name: 'layer 1' digest: 2 } ";

TEST(RunContractTest, NamesThePartOfTheModelAndBothHosts) {
  const RunContract contract(Request(absl::StrCat("worker: 'a' host: 'x' ", kModel, kParts)));
  EXPECT_TRUE(contract.Check(Request(absl::StrCat("worker: 'b' host: 'y' ", kModel, kParts))).ok());
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' host: 'y' ", kModel,
                                                     "model_part { name: 'layer 0' digest: 1 } "
                                                     "model_part { name: 'layer 1' digest: 3 }"))),
              HasSubstr("layer 1 of b on y differs from that of a on x"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' host: 'y' ", kModel,
                                                     "model_part { name: 'layer 0' digest: 1 }"))),
              HasSubstr("b on y has no layer 1, a on x has"));
}

TEST(RunContractTest, NamesWhatDiffersInTheFramework) {
  constexpr char kTorch[] = "framework { name: 'PyTorch' version: '2.4' setting { key: 'threads' value: '1' } } ";
  const RunContract contract(Request(absl::StrCat("worker: 'a' host: 'x' ", kModel, kTorch)));
  EXPECT_TRUE(contract.Check(Request(absl::StrCat("worker: 'b' ", kModel, kTorch))).ok());
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' host: 'y' ", kModel))),
              HasSubstr("b on y computes with Lockstep's own layers, a on x with PyTorch 2.4"));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' host: 'y' ", kModel,
                                                     "framework { name: 'PyTorch' version: '2.5' "
                                                     "setting { key: 'threads' value: '1' } }"))),
              HasSubstr("version: \"2.4\" -> \"2.5\""));
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' ", kModel,
                                                     "framework { name: 'PyTorch' version: '2.4' "
                                                     "setting { key: 'threads' value: '8' } }"))),
              HasSubstr("threads"));
  const RunContract own(Request(absl::StrCat("worker: 'a' ", kModel)));
  EXPECT_THAT(Refusal(own, Request(absl::StrCat("worker: 'b' ", kModel, "framework {}"))), HasSubstr("framework"));
}

TEST(RunContractTest, TheFirstCanaryBecomesTheRuns) {
  const RunContract declared(Request(absl::StrCat("worker: 'a' host: 'x' ", kModel)));
  EXPECT_FALSE(declared.Lacks(Request(kModel)));
  const v1::OpenSessionRequest first = Request(absl::StrCat("worker: 'c' host: 'z' ", kModel, "canary_digest: 11"));
  EXPECT_TRUE(declared.Lacks(first));
  EXPECT_TRUE(declared.Check(first).ok());
  v1::RunRecord record;
  RunContract(declared, first).FillRecord(&record);
  EXPECT_EQ(record.declared_by(), "a on x");
  EXPECT_EQ(record.canary().computed_by(), "c on z");
  EXPECT_EQ(record.canary().result(0).name(), "gradient of w");

  const RunContract contract(record);
  EXPECT_TRUE(contract.Check(Request(absl::StrCat(kModel, "canary_digest: 11"))).ok());
  EXPECT_TRUE(contract.Check(Request(kModel)).ok()) << "not computed yet";
  EXPECT_THAT(Refusal(contract, Request(absl::StrCat("worker: 'b' host: 'y' ", kModel, "canary_digest: 12"))),
              HasSubstr("the gradient of w of b on y differs from that of c on z"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(contract.Check(Request(absl::StrCat(kModel, "canary_digest: 11 canary_digest: 11")))));
}

TEST(RunContractTest, AnotherReleaseMayCutTheModelIntoOtherParts) {
  v1::RunRecord record;
  RunContract(Request(absl::StrCat("worker: 'a' ", kModel, kParts))).FillRecord(&record);
  record.mutable_build()->set_version(kVersion);
  EXPECT_TRUE(absl::IsFailedPrecondition(RunContract(record).Check(Request(kModel))));
  record.mutable_build()->set_version("0.0.1");
  const RunContract contract(record);
  EXPECT_TRUE(contract.Lacks(Request(kModel)));
  EXPECT_TRUE(contract.Check(Request(kModel)).ok());
  v1::RunRecord next;
  RunContract(contract, Request(absl::StrCat("worker: 'b' ", kModel))).FillRecord(&next);
  EXPECT_EQ(next.declared_by(), "b");
  EXPECT_EQ(next.model_part_size(), 0);
}

TEST(RunContractTest, UndeclaredPartsStayUnknown) {
  v1::RunRecord old;
  RunContract(Request(absl::StrCat("worker: 'a' ", kModel, kData))).FillRecord(&old);
  for (const char* version : {"", "0.0.1"}) {
    v1::RunRecord record = old;
    if (*version == '\0') record.clear_declared_by();
    if (*version != '\0') record.mutable_build()->set_version(version);
    // A chief that resumes the run writes the record before any worker joins.
    v1::RunRecord written;
    RunContract(record).FillRecord(&written);
    written.mutable_build()->set_version(kVersion);
    const RunContract contract(written);
    EXPECT_TRUE(contract.Lacks(Request(kModel)));
    EXPECT_TRUE(contract.Check(Request(absl::StrCat("worker: 'b' ", kModel, kData, kParts))).ok()) << version;
  }
}

TEST(CheckVersionsTest, NamesBothHostsAndBothVersions) {
  v1::OpenSessionRequest request;
  request.set_worker("b");
  request.set_host("y");
  EXPECT_THAT(std::string(CheckVersions(request, "x").message()),
              HasSubstr("b on y, Lockstep of unknown version, has wire version 0; the chief on x"));
  request.mutable_build()->set_wire_version(kWireVersion);
  request.mutable_build()->set_arithmetic_version(kArithmeticVersion + 1);
  request.mutable_build()->set_version("9.9");
  const absl::Status status = CheckVersions(request, "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("b on y, Lockstep 9.9, has arithmetic version ", kArithmeticVersion + 1)));
  request.mutable_build()->set_arithmetic_version(kArithmeticVersion);
  EXPECT_TRUE(CheckVersions(request, "x").ok()) << "builds of before the layers had a version of their own";
}

TEST(CheckTransformsTest, ClipsPerSlotNeedAWorkerThatApplies) {
  config::v1::OptimizerConfig optimizer;
  optimizer.mutable_clip()->set_mean_by_global_norm(1);
  v1::OpenSessionRequest request;
  request.set_worker("b");
  EXPECT_TRUE(CheckTransforms(request, optimizer).ok()) << "the chief applies it";
  optimizer.add_multipliers()->set_factor(2);
  EXPECT_THAT(std::string(CheckTransforms(request, optimizer).message()),
              HasSubstr("the run has optimizer.multipliers, which a worker applies to the gradients of each slot; b "));
  optimizer.mutable_clip()->set_by_norm(1);
  const absl::Status status = CheckTransforms(request, optimizer);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the run has optimizer.clip, which"));
  request.set_transforms_gradients(true);
  EXPECT_TRUE(CheckTransforms(request, optimizer).ok());
}

TEST(CheckVersionsTest, OtherLayersMatterWithoutFrameworkOnly) {
  v1::OpenSessionRequest request;
  *request.mutable_build() = ThisBuildInfo();
  EXPECT_TRUE(CheckVersions(request, "x").ok());
  request.mutable_build()->set_layers_version(kLayersVersion + 1);
  const absl::Status status = CheckVersions(request, "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("has layers version ", kLayersVersion + 1)));
  request.mutable_framework()->set_name("PyTorch");
  EXPECT_TRUE(CheckVersions(request, "x").ok());
  request.mutable_build()->set_arithmetic_version(kArithmeticVersion + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckVersions(request, "x")));
}

}  // namespace
}  // namespace lockstep
