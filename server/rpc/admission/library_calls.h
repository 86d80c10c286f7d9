#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_LIBRARY_CALLS_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_LIBRARY_CALLS_H_

namespace lockstep {

// Returns true if the shared library that defines `original` calls the function `name` through its symbol table, and
// the dynamic linker has not yet filled in any function but `definition`. A library that was linked with -Bsymbolic or
// -Bsymbolic-functions calls its own function whatever precedes it.
bool LibraryCalls(const char* name, void* original, void* definition);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_LIBRARY_CALLS_H_
