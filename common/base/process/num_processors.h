#ifndef LOCKSTEP_COMMON_BASE_PROCESS_NUM_PROCESSORS_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_NUM_PROCESSORS_H_

namespace lockstep {

// The processors that this process may use, at least one: how many threads can compute at the same time.
int NumProcessors();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_NUM_PROCESSORS_H_
