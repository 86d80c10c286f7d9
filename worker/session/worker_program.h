#ifndef LOCKSTEP_WORKER_SESSION_WORKER_PROGRAM_H_
#define LOCKSTEP_WORKER_SESSION_WORKER_PROGRAM_H_

namespace lockstep {

// The main of a worker process; `lockstep worker --help` says what it does. A program that links models of its own
// (worker/nn/model_registry.h) calls this and is a worker that knows them.
int WorkerMain(int argc, char** argv);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKER_PROGRAM_H_
