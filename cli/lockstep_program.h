#ifndef LOCKSTEP_CLI_LOCKSTEP_PROGRAM_H_
#define LOCKSTEP_CLI_LOCKSTEP_PROGRAM_H_

namespace lockstep {

// The main of the command line; `lockstep_main --help` lists the commands. A program that links models of its own
// (worker/nn/model_registry.h) calls this and trains, evaluates and, as `worker`, computes them.
int LockstepMain(int argc, char** argv);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOCKSTEP_PROGRAM_H_
