#ifndef LOCKSTEP_CAPI_ANSWER_H_
#define LOCKSTEP_CAPI_ANSWER_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace lockstep {

// Runs the body of a function of the C interface, and returns the code of its result. An exception, such as one for
// lack of memory, becomes an error. Keeps the message for LastError.
int Answer(absl::FunctionRef<absl::Status()> body);
// The message of the calling thread's last failure. Valid until its next call of Answer.
const char* LastError();
// Keeps a text for the calling thread, in one of a few places, until its next call of Answer.
const char* Keep(std::string text);

// InvalidArgument unless `pointer` is not null; `name` is the argument's.
absl::Status RequirePointer(const void* pointer, const char* name);
// RequirePointer, and the text must be UTF-8.
absl::Status RequireText(const char* text, const char* name);
// InvalidArgument unless a struct of the caller has at least the size that the library's first version had.
absl::Status RequireSize(size_t size, size_t least, const char* name);

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_ANSWER_H_
