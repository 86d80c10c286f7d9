#include "lockstep/server/chief/run/program_change.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"
#include "lockstep/server/chief/run/run_settings.h"

namespace lockstep {
namespace {

std::string NameOf(const std::string& program) {
  return program.empty() ? "without functions of a program" : absl::StrCat("with functions of the program ", program);
}

std::vector<std::string> TrainedIn(const v1::ModelSpec& model) {
  std::vector<std::string> names;
  for (const v1::VariableSpec& variable : model.variables()) {
    if (variable.trainable()) names.push_back(variable.name());
  }
  return names;
}

}  // namespace

absl::Status CheckSameProgram(const v1::RunRecord& record, const std::string& program) {
  if (record.program() == program) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the logdir holds an unfinished run that was made ", NameOf(record.program()), "; this program continues it ",
      NameOf(program), ". Continue it as before; once it has ended well, functions may differ. Or use another logdir"));
}

absl::Status CheckSameInitFunction(const v1::RunRecord& record, bool initializes) {
  if (record.initialized_by_program() == initializes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the logdir holds a run without a checkpoint, which began ",
                                                    record.initialized_by_program() ? "with" : "without",
                                                    " an init_fn; this program has ", initializes ? "one" : "none",
                                                    ". Continue it as before, or use another logdir"));
}

void AddProgramChange(int64_t step, const std::string& what, v1::RunRecord* record) {
  // If an incarnation was killed before its first checkpoint, its successor reports the same difference again.
  for (const auto& known : record->program_change()) {
    if (known.step() == step && known.what() == what) return;
  }
  v1::RunRecord::ProgramChange* const change = record->add_program_change();
  change->set_step(step);
  change->set_what(what);
}

bool DifferInTrained(const v1::ModelSpec& a, const v1::ModelSpec& b) {
  if (a.variables_size() != b.variables_size() || TrainedIn(a) == TrainedIn(b)) return false;
  v1::ModelSpec changed = a;
  for (int i = 0; i < a.variables_size(); ++i) {
    changed.mutable_variables(i)->set_trainable(b.variables(i).trainable());
  }
  return google::protobuf::util::MessageDifferencer::Equals(changed, b);
}

void ChangeProgram(int64_t step, const std::string& program, v1::RunRecord* record) {
  if (record->program() == program) return;
  AddProgramChange(step, absl::StrCat("was made ", NameOf(record->program()), ", continues ", NameOf(program)), record);
  record->set_program(program);
}

void ChangeTrainedVariables(int64_t step, const v1::ModelSpec& model, v1::RunRecord* record) {
  if (!DifferInTrained(record->model(), model)) return;
  AddProgramChange(step,
                   absl::StrCat("trains ", absl::StrJoin(TrainedIn(model), ", "), "; before ",
                                absl::StrJoin(TrainedIn(record->model()), ", ")),
                   record);
  *record->mutable_model() = model;
  ForgetDeclaration(record);
}

}  // namespace lockstep
