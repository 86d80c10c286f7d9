#ifndef LOCKSTEP_CLI_COMMANDS_STARTING_CONFIGURATION_H_
#define LOCKSTEP_CLI_COMMANDS_STARTING_CONFIGURATION_H_

namespace lockstep {

// The text of examples/fashion_mnist.textproto.
extern const char kStartingConfiguration[];

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_STARTING_CONFIGURATION_H_
