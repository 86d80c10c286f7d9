#include "lockstep/common/summary/testing/events_of.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

std::vector<std::string> EventsOf(FileSystem* fs, const std::string& path) {
  std::vector<std::string> events;
  const auto reader = RecordReader::Open(fs, path).value();
  for (uint64_t offset = 0; offset < reader->size();) {
    std::string payload;
    offset = reader->ReadAt(offset, &payload).value().next;
    v1::Event event;
    EXPECT_TRUE(event.ParseFromString(payload));
    if (event.has_session_log()) {
      events.push_back(
          absl::StrCat(v1::SessionLog::SessionStatus_Name(event.session_log().status()), " ", event.step()));
    }
    for (const auto& value : event.summary().value()) events.push_back(absl::StrCat(value.tag(), " ", event.step()));
  }
  return events;
}

}  // namespace lockstep
