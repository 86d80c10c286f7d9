// Memory leaks in Debian's libraries, for LeakSanitizer. .bazelrc links this file into every program of an asan build.

// c-ares 1.18.1 leaks the name "localhost" whenever /etc/hosts has no IPv6 address for it.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }
