#include "lockstep/common/config/text/first_difference.h"

#include "gtest/gtest.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {
namespace {

config::v1::RunSpec Spec(uint64_t seed, int64_t batch_size) {
  config::v1::RunSpec spec;
  spec.mutable_training()->set_seed(seed);
  spec.mutable_input()->set_batch_size(batch_size);
  return spec;
}

TEST(FirstDifferenceTest, EqualMessagesHaveNone) { EXPECT_EQ(FirstDifference(Spec(7, 8), Spec(7, 8)), ""); }

TEST(FirstDifferenceTest, NamesTheFieldAndBothValues) {
  EXPECT_EQ(FirstDifference(Spec(7, 8), Spec(9, 8)), "modified: training.seed: 7 -> 9");
}

TEST(FirstDifferenceTest, IsTheFirstOfSeveral) {
  EXPECT_EQ(FirstDifference(Spec(7, 8), Spec(9, 16)), "modified: input.batch_size: 8 -> 16");
}

TEST(FirstDifferenceTest, IsCutWhereAPeersStringIsLong) {
  config::v1::RunSpec spec;
  spec.mutable_checkpoint()->set_warm_start(std::string(5000, 'x'));
  EXPECT_EQ(FirstDifference(config::v1::RunSpec(), spec).size(), 1000u);
}

}  // namespace
}  // namespace lockstep
