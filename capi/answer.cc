#include "lockstep/capi/answer.h"

#include <list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"

namespace lockstep {
namespace {

// Texts that were returned to the calling thread. A list does not move its elements and, when empty, has no memory.
struct Texts {
  std::string error;
  std::list<std::string> kept;
};

Texts& ThreadTexts() {
  thread_local Texts texts;
  return texts;
}

}  // namespace

int Answer(absl::FunctionRef<absl::Status()> body) {
  // Keeps the previous call's texts alive until this call returns, because they may be its arguments.
  const std::list<std::string> before = std::exchange(ThreadTexts().kept, {});
  const absl::Status status = CatchExceptions([&] { return body(); });
  if (!status.ok()) ThreadTexts().error = std::string(status.message());
  return static_cast<int>(status.code());
}

const char* LastError() { return ThreadTexts().error.c_str(); }

const char* Keep(std::string text) { return ThreadTexts().kept.emplace_back(std::move(text)).c_str(); }

absl::Status RequirePointer(const void* pointer, const char* name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is null"));
}

absl::Status RequireText(const char* text, const char* name) {
  RETURN_IF_ERROR(RequirePointer(text, name));
  if (IsUtf8(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is not UTF-8"));
}

absl::Status RequireSize(size_t size, size_t least, const char* name) {
  if (size >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ".size is ", size, ", must be sizeof, which is at least ", least));
}

}  // namespace lockstep
