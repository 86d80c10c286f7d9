// Reads variables during training, over gRPC and through the command line.
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/client/read_all.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadVariablesTest : public ::testing::Test {
 protected:
  ReadVariablesTest() {
    options_.config = SmallRunSpec(/*steps=*/10, /*slots=*/2);
    cluster_ = std::make_unique<TestCluster>(options_);
    EXPECT_TRUE(cluster_->StartChief().ok());
  }
  void Train() {
    cluster_->StartWorker();
    ASSERT_TRUE(cluster_->Wait().ok());
    cluster_->JoinWorkers();
  }
  // Runs ReadCommand on the cluster, with the cluster's files.
  int Run(std::vector<std::string> words) {
    words.push_back(absl::StrCat("--master=grpc://", cluster_->address()));
    out_.str("");
    err_.str("");
    return ReadCommand(cluster_->fs(), words, out_, err_);
  }

  TestCluster::Options options_;
  std::unique_ptr<TestCluster> cluster_;
  std::ostringstream out_, err_;
};

TEST_F(ReadVariablesTest, AChiefWithoutAModelIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(ReadAll(cluster_->NewClient().get(), {}).status()));
  EXPECT_EQ(Run({}), 138);
  EXPECT_THAT(err_.str(), HasSubstr("no chief answers at "));
  EXPECT_THAT(err_.str(), HasSubstr("does not know the model yet"));
}

TEST_F(ReadVariablesTest, ReadsMatchTheChiefsCheckpoint) {
  Train();
  EXPECT_EQ(Run({"--out=/read"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("step 10\nname "));
  EXPECT_THAT(out_.str(), HasSubstr("wrote /read\n"));
  const auto reader = BundleReader::Open(cluster_->fs(), "/read");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(CheckpointDigest(**reader).value(), cluster_->Digest().value());
}

TEST_F(ReadVariablesTest, TheCommandReadsMatchingVariables) {
  Train();
  EXPECT_EQ(Run({"--variable=^norm/moving_", "--variable=^logits/bias/Adam", "--out=/part"}), 0) << err_.str();
  const auto reader = BundleReader::Open(cluster_->fs(), "/part");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(),
              ElementsAre("logits/bias/Adam", "logits/bias/Adam_1", "norm/moving_mean", "norm/moving_variance"));
  EXPECT_THAT(out_.str(), HasSubstr("4 variables, 224 bytes\n"));
  EXPECT_EQ(Run({"--variable=global_step", "--json"}), 0) << err_.str();
  EXPECT_EQ(
      out_.str(),
      "{\"step\": 10,\n \"variables\": [\n"
      "  {\"name\": \"global_step\", \"dtype\": \"int64\", \"shape\": [], \"bytes\": 8, \"min\": 10, \"max\": 10, "
      "\"mean\": 10, \"deviation\": 0}],\n \"bytes\": 8}\n");
  EXPECT_EQ(Run({"--step"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), "10\n");
}

TEST_F(ReadVariablesTest, TheCommandNamesTheError) {
  Train();
  EXPECT_EQ(Run({"--variable=^nothing$"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--variable=^nothing$ is found in none of the "));
  EXPECT_EQ(Run({"--variable=("}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("not a regular expression"));
  EXPECT_EQ(Run({"--out=/no/such/directory"}), 1);
  std::ostringstream out, err;
  EXPECT_EQ(ReadCommand(cluster_->fs(), {}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("--master is missing"));
}

TEST_F(ReadVariablesTest, ARequestIsBounded) {
  Train();
  const auto client = cluster_->NewClient();
  v1::ReadVariablesRequest request;
  request.add_name(std::string(64 << 10, 'x'));
  const absl::Status too_long = client->ReadVariables(request).status();
  EXPECT_TRUE(absl::IsResourceExhausted(too_long)) << too_long;
  request.set_name(0, std::string(60 << 10, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(client->ReadVariables(request).status()));
  request.set_name(0, "logits/kernel");
  const auto reply = client->ReadVariables(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->part(0).content().size(), 24 * 4 * sizeof(float));
  request.clear_name();
  request.set_read_id(reply->read_id());
  EXPECT_TRUE(absl::IsAborted(client->ReadVariables(request).status())) << "that was all of it";
}

}  // namespace
}  // namespace lockstep
