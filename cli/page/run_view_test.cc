#include "lockstep/cli/page/run_view.h"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

class RunViewTest : public ::testing::Test {
 protected:
  v1::WatchRunReply Reply(int64_t first, int64_t last, bool new_history = false) {
    v1::WatchRunReply reply;
    reply.mutable_status()->set_phase(v1::RunStatus::TRAINING);
    reply.mutable_status()->set_global_step(last);
    reply.mutable_status()->set_generation(1);
    reply.set_new_history(new_history);
    for (int64_t step = first; step <= last; ++step) {
      v1::HistoryPoint& point = *reply.add_point();
      point.set_step(step);
      point.set_steps(1);
      point.set_loss(0.5);
    }
    return reply;
  }

  std::string State(const RunView::Cursor& cursor) const { return *view_.StateJson(cursor); }

  SimulatedClock clock_;
  RunView view_{&clock_, "grpc://localhost:2222"};
};

TEST_F(RunViewTest, APageGetsOnlyNewData) {
  view_.OnConnected();
  view_.OnReply(Reply(1, 2, /*new_history=*/true));
  const std::string all = State({});
  EXPECT_TRUE(absl::StrContains(all, "\"reset\":true")) << all;
  EXPECT_TRUE(absl::StrContains(all, "\"points\":[[1,1,0,0.5,0],[2,1,0,0.5,0]]")) << all;
  EXPECT_TRUE(absl::StrContains(all, "\"global_step\":2")) << all;
  view_.OnReply(Reply(3, 3));
  RunView::Cursor cursor;
  cursor.version = 2;
  cursor.points = 2;
  const std::string news = State(cursor);
  EXPECT_TRUE(absl::StrContains(news, "\"reset\":false")) << news;
  EXPECT_TRUE(absl::StrContains(news, "\"points\":[[3,1,0,0.5,0]],\"num_points\":3")) << news;
  view_.OnReply(Reply(2, 3, /*new_history=*/true));
  EXPECT_TRUE(absl::StrContains(State(cursor), "\"reset\":true")) << "the points were merged";
}

TEST_F(RunViewTest, SaysHowLongTheChiefIsGone) {
  view_.OnConnected();
  view_.OnReply(Reply(1, 1, true));
  EXPECT_TRUE(view_.facts().answers);
  clock_.Advance(absl::Seconds(2));
  view_.OnAbsent(absl::UnavailableError("connection refused"));
  clock_.Advance(absl::Seconds(10));
  view_.OnAbsent(absl::UnavailableError("connection refused"));
  const std::string gone = State({});
  EXPECT_TRUE(absl::StrContains(gone, "\"absent_seconds\":12,\"absent_why\":\"connection refused\"")) << gone;
  EXPECT_TRUE(absl::StrContains(gone, "\"global_step\":1")) << "what was known stays: " << gone;
  EXPECT_FALSE(view_.facts().answers);
  view_.OnConnected();
  v1::WatchRunReply back = Reply(1, 1, true);
  back.mutable_status()->set_generation(2);
  view_.OnReply(back);
  EXPECT_FALSE(absl::StrContains(State({}), "absent_seconds"));
  EXPECT_EQ(view_.facts().restarts, 1);
  EXPECT_EQ(view_.facts().absent, absl::Seconds(12));
}

TEST_F(RunViewTest, AChiefThatEndsWithItsRunIsNotMissed) {
  view_.OnConnected();
  v1::WatchRunReply last = Reply(1, 1, true);
  last.mutable_status()->set_phase(v1::RunStatus::FINISHED);
  view_.OnReply(last);
  view_.OnAbsent(absl::UnavailableError("connection refused"));
  const std::string over = State({});
  EXPECT_TRUE(absl::StrContains(over, "\"over\":true")) << over;
  EXPECT_FALSE(absl::StrContains(over, "absent_seconds")) << over;
}

TEST_F(RunViewTest, EventsAreCountedAcrossChiefs) {
  for (int generation = 1; generation <= 2; ++generation) {
    view_.OnConnected();
    v1::WatchRunReply reply = Reply(1, 1, true);
    reply.add_event()->set_number(1);
    view_.OnReply(reply);
  }
  const std::string state = State({});
  EXPECT_TRUE(absl::StrContains(state, "\"events\":[{\"number\":2}],\"last_event\":2")) << state;
}

TEST_F(RunViewTest, PagesShareAnAnswer) {
  view_.OnConnected();
  view_.OnReply(Reply(1, 2, true));
  EXPECT_EQ(view_.StateJson({}), view_.StateJson({})) << "fifty pages that load at once take the memory of one";
  const auto before = view_.StateJson({});
  view_.OnReply(Reply(3, 3));
  EXPECT_NE(view_.StateJson({}), before);
}

}  // namespace
}  // namespace lockstep
