#include "lockstep/kernels/philox_blocks.h"

#include <algorithm>

#include "lockstep/kernels/philox_block.h"
#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/philox_blocks.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using P = PhiloxConstants;
using Numbers = hn::ScalableTag<uint32_t>;
using NumberVector = hn::Vec<Numbers>;
using Wide = hn::Repartition<uint64_t, Numbers>;

// Each lane computes one block.
constexpr int kBlocks = hn::MaxLanes(Numbers());

// The upper and lower halves of the 64-bit products of all lanes.
struct Products {
  HWY_INLINE Products(NumberVector x, uint32_t multiplier) {
    const Numbers d;
    const Wide wide;
    const NumberVector m = hn::Set(d, multiplier);
    const auto even = hn::MulEven(x, m);
    const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), m);
    low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
    high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  }
  NumberVector low;
  NumberVector high;
};

HWY_INLINE NumberVector Low(uint64_t x) { return hn::Set(Numbers(), static_cast<uint32_t>(x)); }
HWY_INLINE NumberVector High(uint64_t x) { return hn::Set(Numbers(), static_cast<uint32_t>(x >> 32)); }

// Computes kBlocks consecutive blocks, whose numbers must have the same upper 32 bits.
HWY_INLINE void BlocksTogether(uint64_t key, uint64_t stream, uint64_t first_block, uint32_t* out) {
  const Numbers d;
  NumberVector c0 = hn::Add(Low(first_block), hn::Iota(d, 0));
  NumberVector c1 = High(first_block);
  NumberVector c2 = Low(stream);
  NumberVector c3 = High(stream);
  NumberVector k0 = Low(key);
  NumberVector k1 = High(key);
  for (int round = 0; round < P::kRounds; ++round) {
    const Products p0(c0, P::kMultiplier0);
    const Products p1(c2, P::kMultiplier1);
    c0 = hn::Xor(hn::Xor(p1.high, c1), k0);
    c1 = p1.low;
    c2 = hn::Xor(hn::Xor(p0.high, c3), k1);
    c3 = p0.low;
    k0 = hn::Add(k0, hn::Set(d, P::kWeyl0));
    k1 = hn::Add(k1, hn::Set(d, P::kWeyl1));
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, out);
}

void FillOnTarget(uint64_t key, uint64_t stream, uint64_t block, int64_t size, uint32_t* out) {
  int64_t i = 0;
  while (i + 4 * kBlocks <= size && static_cast<uint32_t>(block) <= UINT32_MAX - (kBlocks - 1)) {
    BlocksTogether(key, stream, block, out + i);
    i += 4 * kBlocks;
    block += kBlocks;
  }
  for (; i < size; i += 4) {
    const std::array<uint32_t, 4> numbers = PhiloxBlock(key, stream, block++);
    std::copy_n(numbers.begin(), std::min<int64_t>(4, size - i), out + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(FillOnTarget);

void FillPhiloxBlocks(uint64_t key, uint64_t stream, uint64_t first_block, int64_t size, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(FillOnTarget)(key, stream, first_block, size, out);
}

}  // namespace lockstep
#endif  // HWY_ONCE
