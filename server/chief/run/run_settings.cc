#include "lockstep/server/chief/run/run_settings.h"

#include <utility>

#include "google/protobuf/util/message_differencer.h"
#include "lockstep/common/config/settings_change.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;

bool EndsWithProgramsChange(const v1::RunRecord& record) {
  return record.change_size() > 0 && record.change(record.change_size() - 1).by_program();
}

config::v1::OptimizerConfig WithoutRate(config::v1::OptimizerConfig optimizer) {
  optimizer.clear_learning_rate();
  return optimizer;
}

// Returns the settings of `before` that differ in `after`.
v1::RunRecord::Change::Settings Replaced(const config::v1::RunSpec& before, const config::v1::RunSpec& after) {
  v1::RunRecord::Change::Settings replaced;
  const config::v1::OptimizerConfig& optimizer = before.optimizer();
  if (!MessageDifferencer::Equals(optimizer.learning_rate(), after.optimizer().learning_rate())) {
    *replaced.mutable_learning_rate() = optimizer.learning_rate();
  }
  if (!MessageDifferencer::Equals(WithoutRate(optimizer), WithoutRate(after.optimizer()))) {
    *replaced.mutable_optimizer() = WithoutRate(optimizer);
  }
  if (before.input().batch_size() != after.input().batch_size()) replaced.set_batch_size(before.input().batch_size());
  return replaced;
}

}  // namespace

config::v1::RunSpec ConfigAtStart(const v1::RunRecord& record) {
  config::v1::RunSpec config = record.config();
  for (int i = record.change_size(); i > 0 && record.change(i - 1).by_program(); --i) {
    TakeBack(record.change(i - 1), &config);
  }
  return config;
}

void TakeBack(const v1::RunRecord::Change& change, config::v1::RunSpec* config) {
  if (change.has_before()) {
    *config = change.before();
    return;
  }
  const v1::RunRecord::Change::Settings& replaced = change.replaced();
  if (replaced.has_optimizer()) {
    config::v1::OptimizerConfig optimizer = replaced.optimizer();
    optimizer.mutable_learning_rate()->Swap(config->mutable_optimizer()->mutable_learning_rate());
    *config->mutable_optimizer() = std::move(optimizer);
  }
  if (replaced.has_learning_rate()) *config->mutable_optimizer()->mutable_learning_rate() = replaced.learning_rate();
  if (replaced.has_batch_size()) config->mutable_input()->set_batch_size(replaced.batch_size());
}

bool DropLaterChanges(int64_t restored, absl::optional<int64_t> changes, v1::RunRecord* record) {
  const config::v1::RunSpec before = record->config();
  while (EndsWithProgramsChange(*record) &&
         (changes ? record->change_size() > *changes : record->change(record->change_size() - 1).step() > restored)) {
    TakeBack(record->change(record->change_size() - 1), record->mutable_config());
    record->mutable_change()->RemoveLast();
  }
  const bool forgets = ChangesGradients(before, record->config());
  if (forgets) ForgetDeclaration(record);
  return forgets;
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
  *change->mutable_replaced() = Replaced(record->config(), after);
  change->set_by_program(true);
  const bool forgets = ChangesGradients(record->config(), after);
  *record->mutable_config() = after;
  if (forgets) ForgetDeclaration(record);
}

void ForgetDeclaration(v1::RunRecord* record) {
  record->clear_declared_by();
  record->clear_model_part();
  record->clear_framework();
  record->clear_canary();
}

}  // namespace lockstep
