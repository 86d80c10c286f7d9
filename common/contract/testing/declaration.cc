#include "lockstep/common/contract/testing/declaration.h"

#include "lockstep/common/contract/build_info.h"

namespace lockstep {

void CompleteDeclaration(v1::OpenSessionRequest* request, uint64_t digest) {
  *request->mutable_build() = ThisBuildInfo();
  request->set_transforms_gradients(true);
  request->clear_canary_digest();
  for (const v1::VariableSpec& variable : request->model().variables()) {
    if (variable.trainable()) request->add_canary_digest(digest);
  }
  for (int i = 0; i < request->model().update_ops_size(); ++i) request->add_canary_digest(digest);
}

}  // namespace lockstep
