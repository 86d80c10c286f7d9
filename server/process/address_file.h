#ifndef LOCKSTEP_SERVER_PROCESS_ADDRESS_FILE_H_
#define LOCKSTEP_SERVER_PROCESS_ADDRESS_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Returns the master string, grpc://HOST:PORT or a unix socket, by which peers reach a chief that listens on
// `listening`, an address with a port in gRPC's notation. HOST comes from `advertise`, which is "HOST" or "HOST:PORT",
// optionally preceded by grpc://. If that is empty, HOST is the host of `listening`, or `machine` if the chief listens
// on all addresses of the machine. `advertise` may also be a unix socket, which only workers on this machine can use;
// it is then returned. Returns InvalidArgument if there is no such string.
absl::StatusOr<std::string> AdvertisedMaster(absl::string_view listening, absl::string_view advertise,
                                             absl::string_view machine);

// The chief's side of the master address "file:PATH" (common/cluster/address_file.h), which lets the chief move: each
// incarnation writes its address to the file, and the last one writes that the run is over. Call Prepare first, and
// then either PutBack, or Write and End. Not thread-safe.
class AddressFile {
 public:
  struct Options {
    // Must outlive this object.
    FileSystem* fs = nullptr;
    // If empty, there is no file, and all methods do nothing.
    std::string path;
    std::string advertise;
    // This machine's name.
    std::string machine;
  };

  // `listen` are the addresses that the chief will listen on, separated by commas. Port 0 selects any free port.
  // Errors: InvalidArgument for contradictory options, an address that no peer could reach, or a file in a directory
  // that does not exist. Without this check, these errors would occur only once the chief is listening.
  static absl::StatusOr<AddressFile> Create(Options options, absl::string_view listen);

  // Removes an earlier incarnation's mark that the run is over, so that workers wait for this one. Called once the
  // chief owns the run, before a restore that may take a long time. Keeps an earlier incarnation's address, which does
  // no harm because no process listens there.
  absl::Status Prepare();
  // Restores the mark that Prepare removed, unless the file exists again. Called if the chief does not start.
  absl::Status PutBack();
  // Writes the chief's address. Called once the chief is listening on `listening`.
  absl::Status Write(absl::string_view listening);
  // Marks a run that is over, whether done or permanently failed. Keeps the address of a run that may be resumed.
  // Called with the result of RunEnds::Wait.
  absl::Status End(const absl::Status& run);

 private:
  explicit AddressFile(Options options) : options_(std::move(options)) {}

  Options options_;
  // The mark that Prepare removed; empty after Write.
  std::string mark_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_ADDRESS_FILE_H_
