#include "lockstep/server/chief/run/run_settings.h"

namespace lockstep {
namespace {

bool EndsWithProgramsChange(const v1::RunRecord& record) {
  return record.change_size() > 0 && record.change(record.change_size() - 1).by_program();
}

}  // namespace

config::v1::RunSpec ConfigAtStart(const v1::RunRecord& record) {
  int first = record.change_size();
  while (first > 0 && record.change(first - 1).by_program()) --first;
  return first == record.change_size() ? record.config() : record.change(first).before();
}

bool DropLaterChanges(int64_t restored, v1::RunRecord* record) {
  bool any = false;
  while (EndsWithProgramsChange(*record) && record->change(record->change_size() - 1).step() > restored) {
    any = true;
    const config::v1::RunSpec before = record->change(record->change_size() - 1).before();
    *record->mutable_config() = before;
    record->mutable_change()->RemoveLast();
  }
  if (any) ForgetDeclaration(record);
  return any;
}

config::v1::RunSpec WithChanges(const v1::RunRecord& record, config::v1::RunSpec given) {
  if (!EndsWithProgramsChange(record)) return given;
  *given.mutable_optimizer() = record.config().optimizer();
  if (record.config().has_input()) given.mutable_input()->set_batch_size(record.config().input().batch_size());
  return given;
}

void AddChange(int64_t step, const config::v1::RunSpec& after, v1::RunRecord* record) {
  v1::RunRecord::Change* const change = record->add_change();
  change->set_step(step);
  *change->mutable_before() = record->config();
  change->set_by_program(true);
  *record->mutable_config() = after;
  ForgetDeclaration(record);
}

void ForgetDeclaration(v1::RunRecord* record) {
  record->clear_declared_by();
  record->clear_model_part();
  record->clear_framework();
  record->clear_canary();
}

}  // namespace lockstep
