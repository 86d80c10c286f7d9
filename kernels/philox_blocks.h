#ifndef LOCKSTEP_KERNELS_PHILOX_BLOCKS_H_
#define LOCKSTEP_KERNELS_PHILOX_BLOCKS_H_

#include <cstdint>

namespace lockstep {

// Writes the first `size` numbers of blocks first_block, first_block + 1, ... of a stream (philox_block.h), in order.
void FillPhiloxBlocks(uint64_t key, uint64_t stream, uint64_t first_block, int64_t size, uint32_t* out);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PHILOX_BLOCKS_H_
