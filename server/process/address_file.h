#ifndef LOCKSTEP_SERVER_PROCESS_ADDRESS_FILE_H_
#define LOCKSTEP_SERVER_PROCESS_ADDRESS_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The master string by which others reach a chief that listens on `listening`, an address as gRPC spells it with its
// port: grpc://HOST:PORT or the unix socket. HOST is that of `advertise`, "HOST" or "HOST:PORT", also with grpc://, or,
// when that is empty, the one it listens on, or `machine` if that is every address of the machine. InvalidArgument when
// there is none.
absl::StatusOr<std::string> AdvertisedMaster(absl::string_view listening, absl::string_view advertise,
                                             absl::string_view machine);

// A chief's end of the master "file:PATH" (common/cluster/address_file.h), which lets the chief move: each life of it
// writes where it is, and the last one that the run is over. Life: Prepare, then PutBack or Write and End. Not
// thread-safe.
class AddressFile {
 public:
  struct Options {
    // Must outlive this.
    FileSystem* fs = nullptr;
    // Empty: there is no file, and every call does nothing.
    std::string path;
    std::string advertise;
    // Where the chief is to listen: several, separated by commas; port 0 takes any.
    std::string listen = "127.0.0.1:0";
    // This machine's name.
    std::string machine;
  };

  // InvalidArgument for options that contradict each other, an address that nobody could reach, or a file whose
  // directory does not exist: all that would fail only once the chief listens.
  static absl::StatusOr<AddressFile> Create(Options options);

  // The chief owns the run, and takes its time to restore: takes away the mark of an earlier life that the run is over,
  // so that workers wait for this one. The address of an earlier life stays: nothing listens there.
  absl::Status Prepare();
  // The chief does not start after all: the mark that Prepare took away is there again, unless something else is.
  absl::Status PutBack();
  // The chief listens.
  absl::Status Write(absl::string_view listening);
  // RunEnds::Wait has returned this. A run that is over, done or failed for good, is marked; one that may be resumed
  // keeps its address.
  absl::Status End(const absl::Status& run);

 private:
  explicit AddressFile(Options options) : options_(std::move(options)) {}

  Options options_;
  // What Prepare took away, until Write.
  std::string mark_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_ADDRESS_FILE_H_
