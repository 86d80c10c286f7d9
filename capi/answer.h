#ifndef LOCKSTEP_CAPI_ANSWER_H_
#define LOCKSTEP_CAPI_ANSWER_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace lockstep {

// Runs the body of a C interface function and returns the code of its result. Converts an exception, such as
// std::bad_alloc, to an error. Keeps the message for LastError.
int Answer(absl::FunctionRef<absl::Status()> body);
// Returns the message of the calling thread's last failure. The pointer is valid until the thread's next call of
// Answer.
const char* LastError();
// Keeps `text` alive until the calling thread's next call of Answer returns. Returns it as a C string.
const char* Keep(std::string text);

// Returns InvalidArgument if `pointer` is null. `name` is the argument's name.
absl::Status RequirePointer(const void* pointer, const char* name);
// Like RequirePointer, but also requires that the text is UTF-8.
absl::Status RequireText(const char* text, const char* name);
// Returns InvalidArgument unless the size of the caller's struct is at least `least`, its size in the library's first
// version.
absl::Status RequireSize(size_t size, size_t least, const char* name);

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_ANSWER_H_
