#ifndef LOCKSTEP_CLI_SETUP_CERTS_COMMAND_H_
#define LOCKSTEP_CLI_SETUP_CERTS_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Makes a certificate authority and the kits for a run's processes: lockstep certs init, issue, revoke.
int CertsCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Prints a table of the calls that each role may make.
int AuthzCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_SETUP_CERTS_COMMAND_H_
