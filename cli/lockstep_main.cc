// The command line program with the built-in layers. `lockstep_main --help` lists the commands.
#include "lockstep/cli/lockstep_program.h"

int main(int argc, char** argv) { return lockstep::LockstepMain(argc, argv); }
