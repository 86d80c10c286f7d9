#include "lockstep/kernels/images/depthwise.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/images/depthwise.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Calls body(position in the image, position in the window), both counted row by row, for the positions of window
// (oy, ox) that lie inside the image.
template <class Body>
HWY_INLINE void ForEachInside(const WindowGeometry& g, int64_t oy, int64_t ox, Body body) {
  const int64_t top = g.y.first(oy), left = g.x.first(ox);
  const int64_t bottom = std::min(g.y.input, top + g.y.size), right = std::min(g.x.input, left + g.x.size);
  for (int64_t y = std::max<int64_t>(0, top); y < bottom; ++y) {
    for (int64_t x = std::max<int64_t>(0, left); x < right; ++x) {
      body(y * g.x.input + x, (y - top) * g.x.size + x - left);
    }
  }
}

void Forward(const WindowGeometry& g, const float* x, const float* w, const float* bias, float* y) {
  for (int64_t oy = 0; oy < g.y.output; ++oy) {
    for (int64_t ox = 0; ox < g.x.output; ++ox, y += g.channels) {
      ForEachStrip(g.channels, [&](const auto& strip) HWY_ATTR {
        constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
        StripVectors<kVectors> sum = bias == nullptr ? ZeroStrip<kVectors>() : LoadStrip(strip, bias);
        ForEachInside(g, oy, ox, [&](int64_t at, int64_t place) HWY_ATTR {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            sum.vectors[v] =
                hn::MulAdd(strip.Load(x + at * g.channels, v), strip.Load(w + place * g.channels, v), sum[v]);
          }
        });
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) strip.Store(sum[v], y, v);
      });
    }
  }
}

void InputGradient(const WindowGeometry& g, const float* dy, const float* w, float* dx) {
  std::fill_n(dx, g.y.input * g.x.input * g.channels, 0.0f);
  for (int64_t oy = 0; oy < g.y.output; ++oy) {
    for (int64_t ox = 0; ox < g.x.output; ++ox, dy += g.channels) {
      ForEachStrip(g.channels, [&](const auto& strip) HWY_ATTR {
        constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
        const StripVectors<kVectors> gradient = LoadStrip(strip, dy);
        ForEachInside(g, oy, ox, [&](int64_t at, int64_t place) HWY_ATTR {
          float* const to = dx + at * g.channels;
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            strip.Store(hn::MulAdd(gradient[v], strip.Load(w + place * g.channels, v), strip.Load(to, v)), to, v);
          }
        });
      });
    }
  }
}

// The range of outputs for whose windows the position `place` lies inside the image.
struct Outputs {
  int64_t begin;
  int64_t end;
};
Outputs OutputsOf(const SlidingWindow& w, int64_t place) {
  const int64_t before = w.padding - place;
  const int64_t begin = before > 0 ? (before + w.stride - 1) / w.stride : 0;
  const int64_t last = w.input - 1 + before;
  return {begin, last < 0 ? 0 : std::min(w.output, last / w.stride + 1)};
}

void KernelGradient(const WindowGeometry& g, int64_t count, const float* x, const float* dy, int64_t begin, int64_t end,
                    float* dw) {
  const int64_t image = g.y.input * g.x.input * g.channels, gradients = g.y.output * g.x.output * g.channels;
  for (int64_t place = begin; place < end; ++place) {
    const int64_t place_y = place / g.x.size, place_x = place % g.x.size;
    const Outputs rows = OutputsOf(g.y, place_y), columns = OutputsOf(g.x, place_x);
    ForEachStrip(g.channels, [&](const auto& strip) HWY_ATTR {
      constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
      StripVectors<kVectors> sum = ZeroStrip<kVectors>();
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t oy = rows.begin; oy < rows.end; ++oy) {
          const float* const from = x + i * image + (g.y.first(oy) + place_y) * g.x.input * g.channels;
          const float* const gradient = dy + i * gradients + oy * g.x.output * g.channels;
          for (int64_t ox = columns.begin; ox < columns.end; ++ox) {
            const int64_t at = (g.x.first(ox) + place_x) * g.channels;
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) {
              sum.vectors[v] = hn::MulAdd(strip.Load(gradient + ox * g.channels, v), strip.Load(from + at, v), sum[v]);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) strip.Store(sum[v], dw + place * g.channels, v);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(Forward);
HWY_EXPORT(InputGradient);
HWY_EXPORT(KernelGradient);

void DepthwiseImage(const WindowGeometry& geometry, const float* x, const float* w, const float* bias, float* y) {
  HWY_DYNAMIC_DISPATCH(Forward)(geometry, x, w, bias, y);
}

void DepthwiseInputGradient(const WindowGeometry& geometry, const float* dy, const float* w, float* dx) {
  HWY_DYNAMIC_DISPATCH(InputGradient)(geometry, dy, w, dx);
}

void DepthwiseKernelGradient(const WindowGeometry& geometry, int64_t count, const float* x, const float* dy,
                             int64_t begin, int64_t end, float* dw) {
  HWY_DYNAMIC_DISPATCH(KernelGradient)(geometry, count, x, dy, begin, end, dw);
}

}  // namespace lockstep
#endif  // HWY_ONCE
