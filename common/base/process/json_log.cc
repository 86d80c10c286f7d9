#include "lockstep/common/base/process/json_log.h"

#include <unistd.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/utf8.h"

namespace lockstep {
namespace {

// The fields for the lines that the thread logs, or null if there are none.
thread_local const LogFields::Fields* thread_fields = nullptr;

// Returns the text as a JSON string. Bytes that are not UTF-8 become question marks.
std::string Quoted(absl::string_view text) {
  std::string json = "\"";
  for (const char c : ToUtf8(text, text.size())) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", byte);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

const char* SeverityName(google::LogSeverity severity) {
  switch (severity) {
    case google::GLOG_INFO:
      return "info";
    case google::GLOG_WARNING:
      return "warning";
    case google::GLOG_ERROR:
      return "error";
    default:
      return "fatal";
  }
}

// Writes each line of the log to stderr. Never destroyed: threads may log until the process ends.
class JsonSink : public google::LogSink {
 public:
  explicit JsonSink(std::string role) : role_(std::move(role)) {}

  void Set(const std::string& name, const std::string& json) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    fields_[name] = json;
  }

  void send(google::LogSeverity severity, const char* /*full_filename*/, const char* base_filename, int line,
            const google::LogMessageTime& time, const char* message, size_t message_length) override {
    const absl::Time at = absl::FromTimeT(time.timestamp()) + absl::Microseconds(time.usec());
    std::string text = absl::StrCat(
        "{\"time\":\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E6S%Ez", at, absl::LocalTimeZone()), "\",\"severity\":\"",
        SeverityName(severity), "\",\"role\":", Quoted(role_), ",\"process\":", getpid(),
        ",\"file\":", Quoted(base_filename), ",\"line\":", line, CommonFields());
    if (thread_fields != nullptr) {
      for (const auto& field : *thread_fields) absl::StrAppend(&text, ",", Quoted(field.first), ":", field.second);
    }
    absl::StrAppend(&text, ",\"message\":", Quoted(absl::string_view(message, message_length)), "}\n");
    // A single call keeps the line whole even if other threads or processes write to the same stderr.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }

 private:
  std::string CommonFields() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    std::string text;
    for (const auto& field : fields_) absl::StrAppend(&text, ",", Quoted(field.first), ":", field.second);
    return text;
  }

  const std::string role_;
  Mutex mutex_;
  std::map<std::string, std::string> fields_ ABSL_GUARDED_BY(mutex_);
};

JsonSink* sink = nullptr;

}  // namespace

const char kLogFormatHelp[] = "text, or json: one object a line";

absl::Status SetLogFormat(absl::string_view format, const std::string& role) {
  if (format == "text") return absl::OkStatus();
  if (format != "json") {
    return absl::InvalidArgumentError(absl::StrCat("--log_format is text or json, not \"", format, "\""));
  }
  sink = new JsonSink(role);
  google::AddLogSink(sink);
  // Do not write log lines as text, neither to stderr nor to files.
  FLAGS_logtostderr = false;
  FLAGS_alsologtostderr = false;
  FLAGS_stderrthreshold = google::NUM_SEVERITIES;
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) google::SetLogDestination(severity, "");
  return absl::OkStatus();
}

bool LogsJson() { return sink != nullptr; }

void SetLogField(const std::string& name, const std::string& json) {
  if (sink != nullptr) sink->Set(name, json);
}

LogFields::LogFields(Fields fields) : fields_(std::move(fields)), before_(thread_fields) { thread_fields = &fields_; }

LogFields::~LogFields() { thread_fields = before_; }

}  // namespace lockstep
