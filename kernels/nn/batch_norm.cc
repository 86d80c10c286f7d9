#include "lockstep/kernels/nn/batch_norm.h"

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/batch_norm.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/activation-inl.h"
#include "lockstep/kernels/vectors/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Enough for 64 channels if the registers can hold them, because strips narrower than a row do not read memory in
// order.
constexpr int kStripVectors = kFloatLanes < 16 ? 8 : 4;

template <class Strip>
HWY_INLINE void MomentsOfStrip(const Strip& strip, int64_t rows, int64_t columns, const float* x, float* means,
                               float* squares) {
  const FloatVector count = hn::Set(Floats(), static_cast<float>(rows));
  auto mean = ZeroStrip<Strip::kVectors>();
  for (int64_t at = 0; at < rows * columns; at += columns) {
#pragma GCC unroll 8
    for (int v = 0; v < Strip::kVectors; ++v) mean.vectors[v] = hn::Add(mean[v], strip.Load(x + at, v));
  }
#pragma GCC unroll 8
  for (int v = 0; v < Strip::kVectors; ++v) mean.vectors[v] = hn::Div(mean[v], count);
  auto square = ZeroStrip<Strip::kVectors>();
  for (int64_t at = 0; at < rows * columns; at += columns) {
#pragma GCC unroll 8
    for (int v = 0; v < Strip::kVectors; ++v) {
      const FloatVector distance = hn::Sub(strip.Load(x + at, v), mean[v]);
      square.vectors[v] = hn::MulAdd(distance, distance, square[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < Strip::kVectors; ++v) {
    strip.Store(mean[v], means, v);
    strip.Store(square[v], squares, v);
  }
}

void Moments(int64_t rows, int64_t columns, const float* x, float* means, float* squares) {
  ForEachStrip<kStripVectors>(
      columns, [&](const auto& strip) HWY_ATTR { MomentsOfStrip(strip, rows, columns, x, means, squares); });
}

// A strip of ChannelNumbers, in registers.
template <int kVectors>
struct Channels {
  template <class Strip>
  HWY_INLINE Channels(const Strip& strip, const ChannelNumbers& channels)
      : mean(LoadStrip(strip, channels.mean)),
        scale(LoadStrip(strip, channels.scale)),
        shift(LoadStrip(strip, channels.shift)) {}
  StripVectors<kVectors> mean;
  StripVectors<kVectors> scale;
  StripVectors<kVectors> shift;
};

template <class Function, class Strip>
HWY_INLINE void NormalizeStrip(Function function, const Strip& strip, int64_t rows, int64_t columns,
                               const ChannelNumbers& numbers, const float* x, float* y) {
  const Channels<Strip::kVectors> channels(strip, numbers);
  for (int64_t at = 0; at < rows * columns; at += columns) {
#pragma GCC unroll 8
    for (int v = 0; v < Strip::kVectors; ++v) {
      const FloatVector distance = hn::Sub(strip.Load(x + at, v), channels.mean[v]);
      strip.Store(function.Value(hn::MulAdd(distance, channels.scale[v], channels.shift[v])), y + at, v);
    }
  }
}

void Normalized(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                const float* x, float* y) {
  WithActivation(f, [&](auto function) HWY_ATTR {
    ForEachStrip<kStripVectors>(
        columns, [&](const auto& strip) HWY_ATTR { NormalizeStrip(function, strip, rows, columns, channels, x, y); });
  });
}

template <NormGradientMode kMode, class Function, class Strip>
HWY_INLINE void GradientSumsOfStrip(Function function, const Strip& strip, int64_t rows, int64_t columns,
                                    const ChannelNumbers& numbers, const float* x, const float* y, float* dy,
                                    float* products, float* sums) {
  const Channels<Strip::kVectors> channels(strip, numbers);
  auto product = ZeroStrip<Strip::kVectors>();
  auto sum = ZeroStrip<Strip::kVectors>();
  for (int64_t at = 0; at < rows * columns; at += columns) {
#pragma GCC unroll 8
    for (int v = 0; v < Strip::kVectors; ++v) {
      const FloatVector distance = hn::Sub(strip.Load(x + at, v), channels.mean[v]);
      FloatVector value;
      if constexpr (kMode == NormGradientMode::kFromOutputAndStore) {
        value = strip.Load(y + at, v);
      } else {
        value = hn::MulAdd(distance, channels.scale[v], channels.shift[v]);
      }
      const FloatVector dz = function.Gradient(value, strip.Load(dy + at, v));
      if constexpr (kMode != NormGradientMode::kFromInput) strip.Store(dz, dy + at, v);
      sum.vectors[v] = hn::Add(sum[v], dz);
      product.vectors[v] = hn::MulAdd(dz, distance, product[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < Strip::kVectors; ++v) {
    strip.Store(product[v], products, v);
    strip.Store(sum[v], sums, v);
  }
}

template <NormGradientMode kMode>
void GradientSumsInMode(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                        const float* x, const float* y, float* dy, float* products, float* sums) {
  WithActivation(f, [&](auto function) HWY_ATTR {
    ForEachStrip<kStripVectors>(columns, [&](const auto& strip) HWY_ATTR {
      GradientSumsOfStrip<kMode>(function, strip, rows, columns, channels, x, y, dy, products, sums);
    });
  });
}

void GradientSums(const ActivationKernel& f, NormGradientMode mode, int64_t rows, int64_t columns,
                  const ChannelNumbers& channels, const float* x, const float* y, float* dy, float* products,
                  float* sums) {
  switch (mode) {
    case NormGradientMode::kFromInput:
      return GradientSumsInMode<NormGradientMode::kFromInput>(f, rows, columns, channels, x, y, dy, products, sums);
    case NormGradientMode::kFromInputAndStore:
      return GradientSumsInMode<NormGradientMode::kFromInputAndStore>(f, rows, columns, channels, x, y, dy, products,
                                                                      sums);
    case NormGradientMode::kFromOutputAndStore:
      return GradientSumsInMode<NormGradientMode::kFromOutputAndStore>(f, rows, columns, channels, x, y, dy, products,
                                                                       sums);
  }
}

template <class Function, class Strip>
HWY_INLINE void InputGradientOfStrip(Function function, const Strip& strip, int64_t rows, int64_t columns,
                                     const ChannelNumbers& numbers, const float* offsets, const float* slopes,
                                     const float* x, const float* dy, float* dx) {
  const Channels<Strip::kVectors> channels(strip, numbers);
  const auto offset = LoadStrip(strip, offsets);
  const auto slope = LoadStrip(strip, slopes);
  for (int64_t at = 0; at < rows * columns; at += columns) {
#pragma GCC unroll 8
    for (int v = 0; v < Strip::kVectors; ++v) {
      const FloatVector distance = hn::Sub(strip.Load(x + at, v), channels.mean[v]);
      const FloatVector z = hn::MulAdd(distance, channels.scale[v], channels.shift[v]);
      const FloatVector dz = function.Gradient(z, strip.Load(dy + at, v));
      const FloatVector taken = hn::MulAdd(distance, slope[v], offset[v]);
      strip.Store(hn::Sub(hn::Mul(channels.scale[v], dz), taken), dx + at, v);
    }
  }
}

void InputGradient(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                   const float* offset, const float* slope, const float* x, const float* dy, float* dx) {
  WithActivation(f, [&](auto function) HWY_ATTR {
    ForEachStrip<kStripVectors>(columns, [&](const auto& strip) HWY_ATTR {
      InputGradientOfStrip(function, strip, rows, columns, channels, offset, slope, x, dy, dx);
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(Moments);
HWY_EXPORT(Normalized);
HWY_EXPORT(GradientSums);
HWY_EXPORT(InputGradient);

void ColumnMeansAndSquares(int64_t rows, int64_t columns, const float* x, float* means, float* squares) {
  HWY_DYNAMIC_DISPATCH(Moments)(rows, columns, x, means, squares);
}

void NormalizeColumns(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                      const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Normalized)(f, rows, columns, channels, x, y);
}

void SumNormGradients(const ActivationKernel& f, NormGradientMode mode, int64_t rows, int64_t columns,
                      const ChannelNumbers& channels, const float* x, const float* y, float* dy, float* products,
                      float* sums) {
  HWY_DYNAMIC_DISPATCH(GradientSums)(f, mode, rows, columns, channels, x, y, dy, products, sums);
}

void NormInputGradient(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                       const float* offset, const float* slope, const float* x, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(InputGradient)(f, rows, columns, channels, offset, slope, x, dy, dx);
}

}  // namespace lockstep
#endif  // HWY_ONCE
