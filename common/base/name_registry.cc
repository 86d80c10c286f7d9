#include "lockstep/common/base/name_registry.h"

#include "glog/logging.h"

namespace lockstep {

bool MustBeRegistered(const absl::Status& status) {
  CHECK(status.ok()) << status;
  return true;
}

}  // namespace lockstep
