// A shared library with a function that the test can replace with its own.
extern "C" {
__attribute__((visibility("default"), noinline)) int LibraryCallsTestCallee() { return 1; }
__attribute__((visibility("default"))) int LibraryCallsTestCaller() { return LibraryCallsTestCallee(); }
}
