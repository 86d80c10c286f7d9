#ifndef LOCKSTEP_WORKER_SESSION_WORKER_PROGRAM_H_
#define LOCKSTEP_WORKER_SESSION_WORKER_PROGRAM_H_

namespace lockstep {

// The main function of a worker process; `lockstep worker --help` describes it. A program that links its own models
// (worker/nn/model_registry.h) calls this function to become a worker with these models.
int WorkerMain(int argc, char** argv);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKER_PROGRAM_H_
