#ifndef LOCKSTEP_TESTS_FUZZ_INPUT_FILES_H_
#define LOCKSTEP_TESTS_FUZZ_INPUT_FILES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"

namespace lockstep {

// Writes a file to a MemoryFileSystem.
void PutFile(FileSystem* fs, const std::string& path, absl::string_view contents);

// Opens the split "train" and reads all of its examples. Returns false if the split cannot be opened. Ends the process
// if a read fails afterwards, or if an example contradicts the dataset, e.g. because it contains a number that is not
// finite or an unknown class.
bool ReadWholeDataset(FileSystem* fs, const config::v1::InputConfig& config);

// Corrects both checksums of every record in a TFRecord file, as far as the file has room for them, because a fuzzer
// cannot guess a checksum.
std::string WithRecordChecksums(absl::string_view file);

// Returns a single gzip member. `level` is zlib's.
std::string Gzipped(const std::string& data, int level);

// Returns true if OpenDataFile would decompress the file. Such files may expand to a large size; the target data_file
// covers them.
bool IsCompressed(absl::string_view file);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_FUZZ_INPUT_FILES_H_
