#include "lockstep/common/config/text/first_difference.h"

#include <algorithm>

#include "google/protobuf/util/message_differencer.h"

namespace lockstep {
namespace {

constexpr size_t kMaxSize = 1000;

}  // namespace

std::string FirstDifference(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(a, b)) return "";
  return difference.substr(0, std::min(difference.find('\n'), kMaxSize));
}

}  // namespace lockstep
