#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_WARM_START_RULES_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_WARM_START_RULES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "re2/re2.h"

namespace lockstep {

// The compiled form of WarmStartVariables: which variables a warm start loads, and their names in the checkpoint. Like
// slim's get_variables_to_restore, include and exclude match at the start of the name. Thread-safe.
class WarmStartRules {
 public:
  // InvalidArgument names the field of `config`: "rename[1].key is ...".
  static absl::StatusOr<WarmStartRules> Create(const config::v1::WarmStartVariables& config);

  bool Selects(const std::string& variable) const;

  // The tensor from which a variable is initialized.
  struct Source {
    // The tensor's name in the checkpoint.
    std::string key;
    // Dimension i of the variable is dimension permutation[i] of the tensor; empty if the tensor is used unchanged.
    std::vector<int> permutation;
    // False if no rule specifies the order of the dimensions.
    bool has_order = false;
  };
  Source SourceOf(const std::string& variable) const;
  bool require_all() const { return require_all_; }
  bool reshape() const { return reshape_; }

 private:
  using Expressions = std::vector<std::unique_ptr<RE2>>;

  Expressions include_, exclude_;
  struct Rename {
    // The expression must match a whole name.
    std::unique_ptr<RE2> variable;
    // `key` may refer to the text that the expression matched.
    Source source;
  };
  std::vector<Rename> rename_;
  bool require_all_ = false, reshape_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_WARM_START_RULES_H_
