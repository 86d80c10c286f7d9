#include "lockstep/train/slim/transformed_model.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep::train::slim {
namespace {

size_t ElementsOf(const v1::VariableSpec& variable) {
  size_t elements = 1;
  for (const int64_t dim : variable.shape()) elements *= static_cast<size_t>(dim);
  return elements;
}

}  // namespace

// A sink that receives the base model's results for one slot.
class TransformedModel::Sink : public ForwardingSink {
 public:
  Sink(TransformedModel* model, VariableValues values, const Batch& batch, const SlotKey& key, GradientSink* out)
      : ForwardingSink(out),
        model_(*model),
        values_(values),
        batch_(batch),
        key_(key),
        computed_(static_cast<size_t>(model->spec_.variables_size())) {}

  // Computes the program's own updates after the loss and before the first gradient.
  bool OnLoss(float loss) override {
    if (!sink()->OnLoss(loss)) return false;
    own_updates_ = OwnUpdates();
    return own_updates_.ok();
  }
  void OnUpdate(int index, Elements value) override {
    if (const int mapped = model_.update_ops_[index]; mapped >= 0) sink()->OnUpdate(mapped, value);
  }
  float* GradientBuffer(int variable) override {
    AlignedBuffer& unused = model_.unused_[variable];
    return unused.size() > 0 ? unused.as<float>() : sink()->GradientBuffer(variable);
  }
  void OnGradient(int variable) override {
    if (!model_.spec_.variables(variable).trainable()) return;
    computed_[variable] = true;
    holds() ? held_.push_back(variable) : sink()->OnGradient(variable);
  }

  // Returns the error of the program's own update op, which stopped the base model.
  const absl::Status& own_updates() const { return own_updates_; }

  // Called after the last gradient.
  absl::Status Finish() {
    std::vector<GradientAndVariable> pairs = Pairs();
    for (const TransformGradsFn& transform : model_.options_.transforms) {
      RETURN_IF_ERROR(transform(pairs, key_.step));
    }
    for (const int variable : held_) sink()->OnGradient(variable);
    for (int i = 0; i < model_.spec_.variables_size(); ++i) {
      if (computed_[i] || !model_.spec_.variables(i).trainable()) continue;
      std::fill_n(sink()->GradientBuffer(i), ElementsOf(model_.spec_.variables(i)), 0.0f);
      sink()->OnGradient(i);
    }
    return absl::OkStatus();
  }

 private:
  bool holds() const { return !model_.options_.transforms.empty(); }

  absl::Status OwnUpdates() {
    const auto& ops = model_.options_.own_update_ops;
    const int first = model_.spec_.update_ops_size() - static_cast<int>(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto error = [&](const absl::Status& why) {
        return absl::Status(why.code(), absl::StrCat("own_update_ops: ", ops[i].variable.name(), ": ", why.message()));
      };
      const absl::StatusOr<std::vector<float>> value = ops[i].value(values_, batch_, key_);
      if (!value.ok()) return error(value.status());
      if (value->size() != ElementsOf(ops[i].variable)) {
        return error(absl::InvalidArgumentError(
            absl::StrCat("the value has ", value->size(), " elements, the variable ", ElementsOf(ops[i].variable))));
      }
      sink()->OnUpdate(first + static_cast<int>(i), *value);
    }
    return absl::OkStatus();
  }

  // Returns the variables and their gradients in variable order; empty if there are no transforms.
  std::vector<GradientAndVariable> Pairs() {
    std::vector<GradientAndVariable> pairs;
    if (!holds()) return pairs;
    for (int i = 0; i < model_.spec_.variables_size(); ++i) {
      const v1::VariableSpec& variable = model_.spec_.variables(i);
      if (!variable.trainable()) continue;
      GradientAndVariable pair;
      pair.variable = &variable;
      if (computed_[i]) pair.gradient = absl::MakeSpan(sink()->GradientBuffer(i), ElementsOf(variable));
      pairs.push_back(pair);
    }
    return pairs;
  }

  TransformedModel& model_;
  const VariableValues values_;
  const Batch& batch_;
  const SlotKey key_;
  absl::Status own_updates_;
  std::vector<bool> computed_;
  // The variables whose gradients are held, in the order in which they were computed.
  std::vector<int> held_;
};

absl::StatusOr<std::unique_ptr<Model>> TransformedModel::Create(std::unique_ptr<Model> base, Options options) {
  auto model = absl::WrapUnique(new TransformedModel(std::move(base), std::move(options)));
  RETURN_IF_ERROR(model->SelectVariables());
  RETURN_IF_ERROR(model->SelectUpdateOps());
  RETURN_IF_ERROR(model->AddOwnUpdateOps());
  return std::unique_ptr<Model>(std::move(model));
}

TransformedModel::TransformedModel(std::unique_ptr<Model> base, Options options)
    : base_(std::move(base)), options_(std::move(options)), spec_(base_->spec()) {}

absl::Status TransformedModel::SelectVariables() {
  unused_.resize(static_cast<size_t>(spec_.variables_size()));
  if (!options_.variables_to_train) return absl::OkStatus();
  std::set<std::string> wanted(options_.variables_to_train->begin(), options_.variables_to_train->end());
  for (int i = 0; i < spec_.variables_size(); ++i) {
    v1::VariableSpec* const variable = spec_.mutable_variables(i);
    if (!variable->trainable() || wanted.erase(variable->name()) > 0) continue;
    variable->set_trainable(false);
    unused_[i] = AlignedBuffer(ElementsOf(*variable) * sizeof(float));
  }
  if (wanted.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variables_to_train: ", absl::StrJoin(wanted, ", "), ": no trainable variable of the model"));
}

absl::Status TransformedModel::SelectUpdateOps() {
  const v1::ModelSpec& base = base_->spec();
  update_ops_.resize(static_cast<size_t>(base.update_ops_size()));
  for (int i = 0; i < base.update_ops_size(); ++i) update_ops_[i] = i;
  if (!options_.update_ops) return absl::OkStatus();
  const std::set<std::string> chosen(options_.update_ops->begin(), options_.update_ops->end());
  std::set<std::string> unknown = chosen;
  std::vector<std::string> left_out;
  spec_.clear_update_ops();
  for (int i = 0; i < base.update_ops_size(); ++i) {
    const v1::UpdateOpSpec& update = base.update_ops(i);
    unknown.erase(update.variable());
    if (chosen.count(update.variable()) > 0) {
      update_ops_[i] = spec_.update_ops_size();
      *spec_.add_update_ops() = update;
    } else {
      update_ops_[i] = -1;
      left_out.push_back(update.variable());
    }
  }
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("update_ops: ", absl::StrJoin(unknown, ", "), ": no update op of the model changes it"));
  }
  LOG_IF(WARNING, !left_out.empty())
      << "update_ops in create_train_op does not contain all the update_ops of the model: "
      << absl::StrJoin(left_out, ", ") << " will not change";
  return absl::OkStatus();
}

absl::Status TransformedModel::AddOwnUpdateOps() {
  std::set<std::string> names;
  for (const v1::VariableSpec& variable : spec_.variables()) names.insert(variable.name());
  for (const OwnUpdateOp& op : options_.own_update_ops) {
    const std::string& name = op.variable.name();
    const auto wrong = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat("own_update_ops: \"", name, "\": ", why));
    };
    if (!names.insert(name).second) return wrong("the model has such a variable already");
    if (op.variable.trainable()) return wrong("the variable must not be trainable");
    if (!op.value) return wrong("value is null");
    if (IsIntegerVariableType(op.variable.dtype())) {
      return wrong(absl::StrCat("the variable is ", NameOf(op.variable.dtype()), ", its values are float32"));
    }
    *spec_.add_variables() = op.variable;
    v1::UpdateOpSpec* const update = spec_.add_update_ops();
    update->set_variable(name);
    update->set_kind(op.kind);
    update->set_decay(op.decay);
    update->set_zero_debias(op.zero_debias);
    unused_.emplace_back();
  }
  return absl::OkStatus();
}

std::vector<Model::Part> TransformedModel::Fingerprint() const {
  std::vector<Part> parts = base_->Fingerprint();
  if (!options_.description.empty()) parts.push_back({"slim::CreateTrainOp", options_.description});
  return parts;
}

absl::Status TransformedModel::ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                                GradientSink* sink) {
  Sink own(this, values, batch, key, sink);
  const absl::Status computed = base_->ComputeGradients(BaseValues(values), batch, key, &own);
  RETURN_IF_ERROR(own.own_updates());
  RETURN_IF_ERROR(computed);
  return own.Finish();
}

}  // namespace lockstep::train::slim
