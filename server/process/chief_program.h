#ifndef LOCKSTEP_SERVER_PROCESS_CHIEF_PROGRAM_H_
#define LOCKSTEP_SERVER_PROCESS_CHIEF_PROGRAM_H_

namespace lockstep {

// The main function of a chief process; `lockstep chief --help` describes it.
int ChiefMain(int argc, char** argv);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_CHIEF_PROGRAM_H_
