#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/remote_chief.h"
#include "lockstep/cli/report/variable_table.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/client/read_all.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/config/validation/variable_expression.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "re2/re2.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep read";
// Longer lists of names do not fit into a request. The command then reads all variables and keeps the requested ones.
constexpr size_t kMostNameBytes = 60 << 10;

struct ReadFlags {
  std::string master;
  CredentialsFlags credentials;
  std::vector<std::string> expressions;
  std::string out;
  bool step = false;
  bool json = false;
  absl::Duration timeout = absl::Seconds(10);
};

// Returns the names in which at least one expression has a match. Returns InvalidArgument, naming the expression, if
// one has no match.
absl::StatusOr<std::vector<std::string>> FindNames(const VariablesAtStep& names,
                                                   const std::vector<std::string>& expressions) {
  std::vector<std::unique_ptr<RE2>> compiled;
  for (const std::string& expression : expressions) {
    const absl::Status status = CheckVariableExpression(expression);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("--variable ", status.message()));
    compiled.push_back(std::make_unique<RE2>(expression, RE2::Quiet));
  }
  std::vector<bool> found(expressions.size());
  std::vector<std::string> wanted;
  for (const VariablesAtStep::Variable& variable : names.variables) {
    bool wants = false;
    for (size_t i = 0; i < compiled.size(); ++i) {
      if (!RE2::PartialMatch(variable.name, *compiled[i])) continue;
      found[i] = wants = true;
    }
    if (wants) wanted.push_back(variable.name);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) {
      return absl::InvalidArgumentError(absl::StrCat("--variable=", expressions[i], " is found in none of the ",
                                                     names.variables.size(), " names of the run"));
    }
  }
  return wanted;
}

absl::StatusOr<VariablesAtStep> Read(ChiefClient* client, const ReadFlags& flags) {
  ReadAllOptions options;
  if (!flags.expressions.empty() || flags.step) {
    options.names_only = true;
    ASSIGN_OR_RETURN(VariablesAtStep names, ReadAll(client, options));
    if (flags.step) return names;
    options.names_only = false;
    ASSIGN_OR_RETURN(options.names, FindNames(names, flags.expressions));
  }
  const std::vector<std::string> wanted = options.names;
  size_t bytes = 0;
  for (const std::string& name : wanted) bytes += name.size() + 4;
  if (bytes > kMostNameBytes) options.names.clear();
  ASSIGN_OR_RETURN(VariablesAtStep read, ReadAll(client, options));
  if (options.names.size() == wanted.size()) return read;
  // Both `read` and `wanted` are in the run's order.
  std::vector<VariablesAtStep::Variable> kept;
  for (VariablesAtStep::Variable& variable : read.variables) {
    if (kept.size() < wanted.size() && variable.name == wanted[kept.size()]) kept.push_back(std::move(variable));
  }
  read.variables = std::move(kept);
  return read;
}

absl::Status Write(FileSystem* fs, const std::string& prefix, const VariablesAtStep& read) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, prefix));
  for (const VariablesAtStep::Variable& variable : read.variables) {
    RETURN_IF_ERROR(writer->Add(variable.name, variable.dtype, variable.shape, variable.value.bytes()));
  }
  return writer->Finish();
}

void Print(const VariablesAtStep& read, const ReadFlags& flags, std::ostream& out) {
  if (flags.step) {
    out << read.step << "\n";
    return;
  }
  std::vector<VariableRow> rows;
  for (const VariablesAtStep::Variable& variable : read.variables) {
    rows.push_back({variable.name, std::string(NameOf(variable.dtype)), variable.shape.ToString(),
                    variable.value.bytes().size(), StatisticsOf(variable.value)});
  }
  if (flags.json) {
    out << "{\"step\": " << read.step << ",\n \"variables\": ";
    PrintVariableJson(rows, out);
    out << ",\n \"bytes\": " << TotalBytes(rows) << "}\n";
    return;
  }
  out << "step " << read.step << "\n";
  PrintVariableTable(rows, out);
  out << rows.size() << " variables, " << TotalBytes(rows) << " bytes\n";
  if (!flags.out.empty()) out << "wrote " << flags.out << "\n";
}

// Prints the error from a chief that answered without returning variables, and returns the exit code.
int PrintRefusal(const std::string& master, const absl::Status& status, std::ostream& err) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return PrintError(kName, status.message(), kExitBadConfiguration, err);
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
      return PrintError(kName, absl::StrCat("the read was cut short: ", status.message()), kExitRetryable, err);
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInternal:
      return PrintError(kName, status.message(), kExitFailed, err);
    case absl::StatusCode::kUnimplemented:
      return PrintError(kName, absl::StrCat("the chief at ", master, " is too old to be read"), kExitFailed, err);
    default:
      return PrintNoAnswer(kName, master, status, kExitRetryable, err);
  }
}

}  // namespace

int ReadCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ReadFlags flags;
  CommandLine command_line(
      kName,
      "Reads variables, optimizer state and moving averages from a running chief, all at one step, while it trains.",
      "Exit codes: 0 done; 1 the run is over, says its address file, the chief's machine lacks the\n"
      "memory, or --out cannot be written; 2 wrong arguments; 138 no chief answers, or the read was too slow.");
  command_line.AddFlag("master", "grpc://HOST:PORT", kRemoteMasterHelp, &flags.master);
  flags.credentials.Declare(&command_line);
  command_line.AddFlag("variable", "EXPRESSION",
                       "only those in whose name, as in a checkpoint, this RE2 expression is found: "
                       "--variable='^hidden1/' with the optimizer's state, --variable='/Momentum$' that alone",
                       &flags.expressions);
  command_line.AddFlag("out", "PREFIX", "also writes what was read as a checkpoint, PREFIX.index and its data",
                       &flags.out);
  command_line.AddFlag("step", "", "prints only the step, and reads nothing", &flags.step);
  command_line.AddFlag("json", "", "prints one JSON object", &flags.json);
  command_line.AddFlag("timeout", "TIME", "how long to wait for each answer of about 1 MiB", &flags.timeout);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto address = ParseRemoteMaster(flags.master);
  if (!address.ok()) return PrintError(kName, address.status().message(), kExitBadConfiguration, err);
  const absl::Status targets = FindTargets(fs, *address).status();
  if (!targets.ok()) return PrintNoAnswer(kName, flags.master, targets, kExitRetryable, err);

  const auto credentials = flags.credentials.Load(fs);
  if (!credentials.ok()) return PrintError(kName, credentials.status().message(), kExitBadConfiguration, err);
  GrpcClientOptions options;
  options.call_timeout = flags.timeout;
  options.credentials = *credentials;
  const auto client = GrpcConnector(fs, options).Connect(*address);
  if (!client.ok()) return PrintError(kName, client.status().message(), kExitBadConfiguration, err);
  const absl::StatusOr<VariablesAtStep> read = Read(client->get(), flags);
  if (!read.ok()) return PrintRefusal(flags.master, read.status(), err);
  if (!flags.out.empty() && !flags.step) {
    const absl::Status written = Write(fs, flags.out, *read);
    if (!written.ok()) return PrintError(kName, written.message(), kExitFailed, err);
  }
  Print(*read, flags, out);
  return kExitDone;
}

}  // namespace lockstep
