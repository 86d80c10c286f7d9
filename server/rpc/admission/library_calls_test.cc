#include "lockstep/server/rpc/admission/library_calls.h"

#include <dlfcn.h>

#include "gtest/gtest.h"

extern "C" __attribute__((visibility("default"))) int LibraryCallsTestCallee() { return 2; }

namespace lockstep {
namespace {

constexpr char kCallee[] = "LibraryCallsTestCallee";

// Compares the result of LibraryCalls with the function that a call reaches, both before and after the call.
void ExpectReplaced(const char* path, bool is_replaced) {
  void* const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  void* const original = dlsym(library, kCallee);
  void* const definition = reinterpret_cast<void*>(&LibraryCallsTestCallee);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, kCallee), definition) << "the program's comes first in both cases";
  EXPECT_EQ(LibraryCalls(kCallee, original, definition), is_replaced);
  const auto call = reinterpret_cast<int (*)()>(dlsym(library, "LibraryCallsTestCaller"));
  EXPECT_EQ(call(), is_replaced ? 2 : 1);
  EXPECT_EQ(LibraryCalls(kCallee, original, definition), is_replaced);
}

TEST(LibraryCallsTest, FindsCallsThroughTheSymbolTable) {
  ExpectReplaced("server/rpc/testing/libcalls_by_name.so", true);
}

TEST(LibraryCallsTest, FindsThatALibraryCallsItsOwn) {
  ExpectReplaced("server/rpc/testing/libcalls_its_own.so", false);
}

}  // namespace
}  // namespace lockstep
