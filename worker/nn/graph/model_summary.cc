#include "lockstep/worker/nn/graph/model_summary.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/worker/nn/graph/graph_model.h"

namespace lockstep {
namespace {

constexpr int kColumns = 6;
// The columns before this one are text, aligned to the left; the others are numbers, aligned to the right.
constexpr int kFirstNumber = 3;
using Line = std::array<std::string, kColumns>;

void CountVariable(const v1::VariableSpec& variable, ModelSummary::Row* row) {
  int64_t elements = 1;
  for (const int64_t dim : variable.shape()) elements *= dim;
  row->parameters += elements;
  row->bytes += elements * static_cast<int64_t>(SizeOf(VariableType(variable.dtype())));
  if (!variable.trainable()) row->fixed_parameters += elements;
}

ModelSummary::Row SummarizeLayer(const config::v1::Layer& layer, const GraphNode& node, const v1::ModelSpec& spec) {
  ModelSummary::Row row;
  row.name = layer.name();
  row.kind = config::v1::Layer::descriptor()->FindFieldByNumber(layer.kind_case())->name();
  row.shape = node.op->output_shape().ToString();
  row.multiply_adds = node.op->multiply_adds();
  for (int i = 0; i < node.num_variables; ++i) CountVariable(spec.variables(node.first_variable + i), &row);
  return row;
}

// Formats 1234567 as "1,234,567".
std::string WithCommas(int64_t number) {
  std::string text = absl::StrCat(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

Line MakeLine(const ModelSummary::Row& row) {
  return {
      row.name, row.kind, row.shape, WithCommas(row.parameters), WithCommas(row.bytes), WithCommas(row.multiply_adds)};
}

}  // namespace

absl::StatusOr<ModelSummary> SummarizeModel(const config::v1::ModelConfig& config, const ExampleSpec& examples) {
  ModelSummary summary;
  if (config.registered().empty()) {
    ASSIGN_OR_RETURN(const auto model, GraphModel::Create(config, examples));
    for (int i = 0; i < config.layer_size(); ++i) {
      summary.rows.push_back(SummarizeLayer(config.layer(i), model->graph().nodes[i], model->spec()));
    }
  } else {
    ASSIGN_OR_RETURN(const auto model, CreateModel(config, examples));
    for (const v1::VariableSpec& variable : model->spec().variables()) {
      ModelSummary::Row row;
      row.name = variable.name();
      row.kind = "variable";
      row.shape = absl::StrCat("[", absl::StrJoin(variable.shape(), ","), "]");
      CountVariable(variable, &row);
      summary.rows.push_back(std::move(row));
    }
  }
  summary.total.name = "total";
  for (const ModelSummary::Row& row : summary.rows) {
    summary.total.parameters += row.parameters;
    summary.total.fixed_parameters += row.fixed_parameters;
    summary.total.bytes += row.bytes;
    summary.total.multiply_adds += row.multiply_adds;
  }
  return summary;
}

std::string ModelSummary::ToTable() const {
  std::vector<Line> lines = {{"layer", "kind", "output", "parameters", "bytes", "multiply-adds"}};
  for (const Row& row : rows) lines.push_back(MakeLine(row));
  lines.push_back(MakeLine(total));
  std::array<size_t, kColumns> widths = {};
  for (const Line& line : lines) {
    for (int c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string table;
  for (const Line& line : lines) {
    for (int c = 0; c < kColumns; ++c) {
      const std::string space(widths[c] - line[c].size(), ' ');
      const std::string gap = c == 0 ? "" : "  ";
      absl::StrAppend(&table, gap, c < kFirstNumber ? absl::StrCat(line[c], space) : absl::StrCat(space, line[c]));
    }
    absl::StrAppend(&table, "\n");
  }
  if (total.fixed_parameters > 0) {
    absl::StrAppend(&table, WithCommas(total.parameters - total.fixed_parameters), " of ", WithCommas(total.parameters),
                    " parameters are trained\n");
  }
  return table;
}

}  // namespace lockstep
