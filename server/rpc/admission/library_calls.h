#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_LIBRARY_CALLS_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_LIBRARY_CALLS_H_

namespace lockstep {

// Returns true if the shared library that defines `original` calls the function `name` through its symbol table, and
// the dynamic linker has not bound it to any function other than `definition`. A library linked with -Bsymbolic or
// -Bsymbolic-functions always calls its own function.
bool LibraryCalls(const char* name, void* original, void* definition);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_LIBRARY_CALLS_H_
