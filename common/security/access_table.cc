#include "lockstep/common/security/access_table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lockstep {
namespace {

// The columns of the table. The chief's own certificate has the rights of an operator: its holder could replace the
// chief.
constexpr PeerRole kColumns[] = {PeerRole::kAnonymous, PeerRole::kViewer,   PeerRole::kReader,
                                 PeerRole::kWorker,    PeerRole::kOperator, PeerRole::kLocal};

struct Row {
  absl::string_view method;
  bool allowed[std::size(kColumns)];
};

constexpr Row kRows[] = {
    //                                                 anonymous viewer reader worker operator local
    {"/grpc.health.v1.Health/Check", /*              */ {true, true, true, true, true, true}},
    {"/lockstep.v1.ChiefService/GetStatus", /*       */ {false, true, true, true, true, true}},
    {"/lockstep.v1.ChiefService/WatchRun", /*        */ {false, true, true, true, true, true}},
    {"/lockstep.v1.ChiefService/ReadVariables", /*   */ {false, false, true, true, true, true}},
    {"/lockstep.v1.ChiefService/GetRunSpec", /*      */ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/OpenSession", /*     */ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/SetInitialValues", /**/ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/GetCanaryValues", /* */ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/Heartbeat", /*       */ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/Step", /*            */ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/AddSummary", /*      */ {false, false, false, true, false, true}},
    {"/lockstep.v1.ChiefService/RequestEnd", /*      */ {false, false, false, true, true, true}},
};

size_t ColumnOf(PeerRole role) {
  if (role == PeerRole::kChief) role = PeerRole::kOperator;
  return static_cast<size_t>(std::find(std::begin(kColumns), std::end(kColumns), role) - std::begin(kColumns));
}

const Row* FindRow(absl::string_view method) {
  const Row* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [method](const Row& each) { return each.method == method; });
  return row == std::end(kRows) ? nullptr : row;
}

absl::string_view ShortName(absl::string_view method) { return method.substr(method.rfind('.') + 1); }

}  // namespace

bool MayCall(PeerRole role, absl::string_view method) {
  const Row* const row = FindRow(method);
  return row == nullptr ? role == PeerRole::kLocal : row->allowed[ColumnOf(role)];
}

absl::Status CheckAccess(PeerRole role, absl::string_view name, absl::string_view method) {
  if (MayCall(role, method)) return absl::OkStatus();
  std::vector<absl::string_view> allowed;
  for (const PeerRole each : kColumns) {
    if (MayCall(each, method)) allowed.push_back(PeerRoleName(each));
  }
  const std::string who =
      absl::StrCat(ShortName(method), " is for the roles ", absl::StrJoin(allowed, ", "), "; the peer is ");
  if (role == PeerRole::kAnonymous) {
    return absl::UnauthenticatedError(absl::StrCat(who, "anonymous: it has shown no certificate with a role"));
  }
  return absl::PermissionDeniedError(absl::StrCat(who, name, ", a ", PeerRoleName(role)));
}

std::string AccessTableText() {
  std::string text = absl::StrFormat("%-29s", "");
  for (const PeerRole role : kColumns) absl::StrAppendFormat(&text, " %9s", std::string(PeerRoleName(role)));
  text += "\n";
  for (const Row& row : kRows) {
    absl::StrAppendFormat(&text, "%-29s", std::string(ShortName(row.method)));
    for (const bool allowed : row.allowed) absl::StrAppendFormat(&text, " %9s", allowed ? "yes" : "-");
    text += "\n";
  }
  return text;
}

}  // namespace lockstep
