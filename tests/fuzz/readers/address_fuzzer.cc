#include <sstream>

#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Parses the text as a master string, and as the contents of an address file.
bool RunAddress(absl::string_view input) {
  const auto master = ParseMasterAddress(input);
  if (master.ok()) {
    for (const std::string& target : master->targets) CHECK(!target.empty());
  } else {
    CHECK(absl::IsInvalidArgument(master.status())) << master.status();
  }
  MemoryFileSystem fs;
  PutFile(&fs, "f", input);
  MasterAddress file;
  file.file = "f";
  const auto targets = FindTargets(&fs, file);
  if (targets.ok()) CHECK(!targets->empty());
  return master.ok();
}

// Parses words, one per line.
bool RunFlags(absl::string_view input) {
  std::string text, argument;
  int64_t number = 0;
  double fraction = 0;
  bool is_set = false;
  absl::Duration duration;
  std::vector<std::string> list;
  CommandLine command("fuzz", "Reads flags.");
  command.AddArgument("INPUT", "what to read", &argument, CommandLine::kOptional);
  command.AddFlag("text", "TEXT", "a text", &text);
  command.AddFlag("number", "N", "a number", &number);
  command.AddFlag("fraction", "X", "a fraction", &fraction);
  command.AddFlag("wait", "TIME", "a duration", &duration);
  command.AddFlag("list", "ITEM", "may be repeated", &list);
  command.AddFlag("set", "", "a switch", &is_set);
  std::ostringstream out, err;
  const auto exit = command.Parse(absl::StrSplit(input, '\n'), out, err);
  if (exit.has_value()) CHECK(*exit == 0 || *exit == 2) << *exit;
  if (exit == 2) CHECK(!err.str().empty());
  return !exit.has_value();
}

std::vector<std::string> AddressSeeds() {
  return {"grpc://host:2222", "grpc://a:1,grpc://[::1]:2", "unix:/run/chief", "unix-abstract:name", "file:/path", "",
          "127.0.0.1:80"};
}

std::vector<std::string> FlagSeeds() {
  return {"--text=a\n--number\n-7\n--set\nfile\n--list=a,b\n--list\nc",
          "--fraction=1e-3\n--wait=90s\n--set=false\n--\n--text"};
}

const FuzzTarget kAddress({"address", 64 << 10, 100, RunAddress, AddressSeeds, 512});
const FuzzTarget kFlags({"flags", 64 << 10, 200, RunFlags, FlagSeeds, 512});

}  // namespace
}  // namespace lockstep
