#include "lockstep/server/rpc/visitors.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class NumberedVisitor : public Visitor {
 public:
  NumberedVisitor(int number, std::vector<int>* evicted) : number_(number), evicted_(evicted) {}
  void OnEvicted() override { evicted_->push_back(number_); }

 private:
  const int number_;
  std::vector<int>* const evicted_;
};

TEST(VisitorsTest, TheFirstGoesWhenThereAreTooMany) {
  Visitors visitors(3);
  std::vector<int> evicted;
  std::vector<std::shared_ptr<NumberedVisitor>> all;
  for (int i = 0; i < 7; ++i) all.push_back(std::make_shared<NumberedVisitor>(i, &evicted));
  for (int i = 0; i < 5; ++i) visitors.Enter(all[i]);
  EXPECT_THAT(evicted, ElementsAre(0, 1));
  visitors.Leave(all[3].get());
  visitors.Leave(all[3].get());
  visitors.Leave(all[0].get());
  visitors.Enter(all[5]);
  EXPECT_THAT(evicted, ElementsAre(0, 1));
  visitors.Enter(all[6]);
  EXPECT_THAT(evicted, ElementsAre(0, 1, 2));
  EXPECT_EQ(all[3].use_count(), 1) << "who has left is forgotten";
  EXPECT_EQ(all[2].use_count(), 1);
  EXPECT_EQ(all[6].use_count(), 2);
}

}  // namespace
}  // namespace lockstep
