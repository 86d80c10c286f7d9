#ifndef LOCKSTEP_CLI_CHECKPOINT_EXPORT_COMMAND_H_
#define LOCKSTEP_CLI_CHECKPOINT_EXPORT_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// `lockstep export DIR|CHECKPOINT` writes a checkpoint's weights to a file that other programs can read.
int ExportCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CHECKPOINT_EXPORT_COMMAND_H_
