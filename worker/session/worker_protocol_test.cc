#include "lockstep/worker/session/worker_protocol.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/transcript.h"

namespace lockstep {
namespace {

using Phase = WorkerProtocol::Phase;
using Effects = WorkerProtocol::Effects;

// Returns a status with the code of this name, such as "UNAVAILABLE", and without a message.
absl::Status StatusOf(absl::string_view code) {
  for (int i = 0; i <= 16; ++i) {
    const auto status = static_cast<absl::StatusCode>(i);
    if (absl::StatusCodeToString(status) == code) return absl::Status(status, "");
  }
  ADD_FAILURE() << "no code is " << code;
  return absl::OkStatus();
}

// "UNAVAILABLE: gone"
std::string TextOf(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), status.message().empty() ? "" : ": ", status.message());
}

// Events: open, reopen, token, given back, finished[: MESSAGE], error CODE, block [own] CODE, heartbeat [finished]
// [ended[: MESSAGE]] CODE, replaced, stop, and "illegal EVENT" for one that must end the program.
Effects Act(absl::string_view event, WorkerProtocol* protocol) {
  if (event == "open") return protocol->OnOpen();
  if (event == "reopen") return protocol->OnReopen();
  if (event == "given back") return protocol->OnGivenBack();
  if (event == "token") return protocol->OnToken();
  if (event == "stop") return protocol->OnStop();
  if (event == "replaced") return protocol->OnReplaced(absl::AbortedError("replaced"));
  if (absl::ConsumePrefix(&event, "finished")) {
    absl::ConsumePrefix(&event, ": ");
    return protocol->OnFinished(std::string(event));
  }
  if (absl::ConsumePrefix(&event, "error ")) return protocol->OnError(StatusOf(event));
  if (absl::ConsumePrefix(&event, "block ")) {
    const bool own = absl::ConsumePrefix(&event, "own ");
    return protocol->OnBlock(StatusOf(event), own);
  }
  if (absl::ConsumePrefix(&event, "heartbeat ")) {
    const bool finished = absl::ConsumePrefix(&event, "finished ");
    if (!absl::ConsumePrefix(&event, "ended")) return protocol->OnHeartbeat(StatusOf(event), finished);
    absl::ConsumePrefix(&event, ": ");
    return protocol->OnHeartbeat(absl::OkStatus(), finished, std::string(event));
  }
  ADD_FAILURE() << "no event is " << event;
  return Effects();
}

std::string TextOf(const Effects& effects) {
  std::vector<std::string> words;
  if (effects.progress) words.push_back("progress");
  if (effects.drop) words.push_back("drop");
  if (effects.cancel_wait) words.push_back("cancel wait");
  if (effects.cancel) words.push_back("cancel");
  if (effects.leave) words.push_back("leave");
  switch (effects.next) {
    case Effects::Next::kNothing:
      break;
    case Effects::Next::kAwaitToken:
      words.push_back("await a token");
      break;
    case Effects::Next::kCompute:
      words.push_back("compute");
      break;
    case Effects::Next::kEnd:
      words.push_back(absl::StrCat(effects.end.final        ? "end for good with "
                                   : effects.end.given_back ? "end the stream with "
                                                            : "end with ",
                                   TextOf(effects.end.status)));
  }
  EXPECT_TRUE(effects.next == Effects::Next::kEnd || (effects.end.status.ok() && !effects.end.final));
  return absl::StrJoin(words, ", ");
}

std::string TextOf(const WorkerProtocol& protocol) {
  const absl::string_view phase = protocol.phase() == Phase::kClosed     ? "closed"
                                  : protocol.phase() == Phase::kAwaiting ? "awaiting"
                                                                         : "computing";
  return absl::StrCat("[", phase, protocol.stopping() ? ", stopping]" : "]");
}

TEST(WorkerProtocolTest, FollowsItsTranscript) {
  PlayTranscript("worker/session/testdata/worker_protocol.txt", [] {
    return [protocol = WorkerProtocol()](absl::string_view event) mutable {
      if (absl::ConsumePrefix(&event, "illegal ")) {
        EXPECT_DEATH(Act(event, &protocol), "Check failed");
        return std::string("the program ends");
      }
      const std::string effects = TextOf(Act(event, &protocol));
      return absl::StrCat(effects, effects.empty() ? "" : " ", TextOf(protocol));
    };
  });
}

}  // namespace
}  // namespace lockstep
