// A chief; `lockstep chief --help` describes it.
#include "lockstep/server/process/chief_program.h"

int main(int argc, char** argv) { return lockstep::ChiefMain(argc, argv); }
