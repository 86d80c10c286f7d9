#ifndef LOCKSTEP_CLI_LOCKSTEP_PROGRAM_H_
#define LOCKSTEP_CLI_LOCKSTEP_PROGRAM_H_

namespace lockstep {

// The main function of the command line program. `lockstep_main --help` lists the commands. A program that links its
// own models (worker/nn/model_registry.h) calls this function to train and evaluate them, and to run chiefs and
// workers.
int LockstepMain(int argc, char** argv);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOCKSTEP_PROGRAM_H_
