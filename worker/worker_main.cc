// A worker with the built-in layers; `lockstep worker --help` describes it.
#include "lockstep/worker/session/worker_program.h"

int main(int argc, char** argv) { return lockstep::WorkerMain(argc, argv); }
