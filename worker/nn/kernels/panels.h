#ifndef LOCKSTEP_WORKER_NN_KERNELS_PANELS_H_
#define LOCKSTEP_WORKER_NN_KERNELS_PANELS_H_

#include "lockstep/common/kernels/matrix.h"

namespace lockstep {

// Row-major panels of 16 columns of b: [NumPanels(b.columns)][b.rows][16], with anything beyond the last column.
void PackPanels(const Matrix& b, float* panels);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_PANELS_H_
