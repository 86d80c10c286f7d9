#ifndef LOCKSTEP_TESTS_FUZZ_INPUT_FILES_H_
#define LOCKSTEP_TESTS_FUZZ_INPUT_FILES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"

namespace lockstep {

// Writes a file of a MemoryFileSystem.
void PutFile(FileSystem* fs, const std::string& path, absl::string_view contents);

// Opens the split "train" and reads all of its examples. False when it does not open. Ends the process when what opened
// does not read, or an example is not what its dataset says: a number that is not finite, a class that there is not.
bool ReadWholeDataset(FileSystem* fs, const config::v1::InputConfig& config);

// Corrects the two checksums of every record of a TFRecord file that has room for them: no fuzzer guesses one.
std::string WithRecordChecksums(absl::string_view file);

// One gzip member; level as zlib has it.
std::string Gzipped(const std::string& data, int level);

// Returns true for a file that OpenDataFile decompresses: the target data_file has these, and they may become large.
bool IsCompressed(absl::string_view file);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_FUZZ_INPUT_FILES_H_
