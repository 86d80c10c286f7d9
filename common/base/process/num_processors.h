#ifndef LOCKSTEP_COMMON_BASE_PROCESS_NUM_PROCESSORS_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_NUM_PROCESSORS_H_

namespace lockstep {

// Returns the number of processors that this process may use, at least one. This many threads can compute at the same
// time.
int NumProcessors();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_NUM_PROCESSORS_H_
