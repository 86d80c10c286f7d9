#include "lockstep/kernels/images/pool.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/images/pool.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// The positions of a window that lie inside the input.
struct Range {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};
Range InputRange(const SlidingWindow& w, int64_t o) {
  return {std::max<int64_t>(0, w.first(o)), std::min(w.input, w.first(o) + w.size)};
}

// Returns true if no input position lies in two windows.
bool Disjoint(const WindowGeometry& g) { return g.y.stride >= g.y.size && g.x.stride >= g.x.size; }
// Returns true if the windows are disjoint and cover all input positions.
bool Covering(const WindowGeometry& g) {
  const auto covers = [](const SlidingWindow& w) { return w.stride == w.size && w.span() >= w.padding + w.input; };
  return covers(g.y) && covers(g.x);
}

void ClearUnlessCovered(const WindowGeometry& g, float* dx) {
  if (!Covering(g)) std::fill_n(dx, g.y.input * g.x.input * g.channels, 0.0f);
}

// A window's positions, and the offset of its output.
struct Window {
  Range rows;
  Range columns;
  int64_t output;
  int64_t size() const { return rows.size() * columns.size(); }
};

// Calls body(window, strip) for each window of an image and each strip of its channels.
template <class Body>
HWY_INLINE void ForEachWindow(const WindowGeometry& g, Body body) {
  int64_t at = 0;
  for (int64_t oy = 0; oy < g.y.output; ++oy) {
    const Range rows = InputRange(g.y, oy);
    for (int64_t ox = 0; ox < g.x.output; ++ox, at += g.channels) {
      const Window window{rows, InputRange(g.x, ox), at};
      ForEachStrip(g.channels, [&](const auto& strip) HWY_ATTR { body(window, strip); });
    }
  }
}

// Calls body(offset of the position's channels, the position's number in the window) for each position of one window.
template <class Body>
HWY_INLINE void ForEachPosition(const WindowGeometry& g, const Window& window, Body body) {
  int32_t number = 0;
  for (int64_t y = window.rows.begin; y < window.rows.end; ++y) {
    const int64_t row = y * g.x.input * g.channels;
    for (int64_t x = window.columns.begin; x < window.columns.end; ++x) body(row + x * g.channels, number++);
  }
}

using Words = hn::RebindToSigned<Floats>;

// Returns the number as the bits of a float, which is how winners are stored.
HWY_INLINE FloatVector BitsOf(int32_t number) { return hn::BitCast(Floats(), hn::Set(Words(), number)); }

void MaxPool(const WindowGeometry& g, const float* x, int32_t* winners, float* y) {
  ForEachWindow(g, [&](const Window& window, const auto& strip) HWY_ATTR {
    constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
    const int64_t first = (window.rows.begin * g.x.input + window.columns.begin) * g.channels;
    StripVectors<kVectors> largest = LoadStrip(strip, x + first);
    StripVectors<kVectors> winner = ZeroStrip<kVectors>();
    ForEachPosition(g, window, [&](int64_t offset, int32_t number) HWY_ATTR {
      const FloatVector bits = BitsOf(number);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const FloatVector value = strip.Load(x + offset, v);
        const auto larger = hn::Or(hn::Gt(value, largest[v]), hn::IsNaN(value));
        largest.vectors[v] = hn::IfThenElse(larger, value, largest[v]);
        winner.vectors[v] = hn::IfThenElse(larger, bits, winner[v]);
      }
    });
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      strip.Store(largest[v], y + window.output, v);
      if (winners != nullptr) strip.Store(winner[v], reinterpret_cast<float*>(winners) + window.output, v);
    }
  });
}

void MaxGradient(const WindowGeometry& g, const int32_t* winners, const float* dy, float* dx) {
  const Words di;
  const bool add = !Disjoint(g);
  ClearUnlessCovered(g, dx);
  ForEachWindow(g, [&](const Window& window, const auto& strip) HWY_ATTR {
    constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
    const StripVectors<kVectors> gradient = LoadStrip(strip, dy + window.output);
    const StripVectors<kVectors> winner = LoadStrip(strip, reinterpret_cast<const float*>(winners) + window.output);
    ForEachPosition(g, window, [&](int64_t offset, int32_t number) HWY_ATTR {
      const auto place = hn::Set(di, number);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const auto won = hn::RebindMask(Floats(), hn::Eq(hn::BitCast(di, winner[v]), place));
        const FloatVector part = hn::IfThenElseZero(won, gradient[v]);
        strip.Store(add ? hn::Add(strip.Load(dx + offset, v), part) : part, dx + offset, v);
      }
    });
  });
}

void AveragePool(const WindowGeometry& g, const float* x, float* y) {
  const Floats d;
  ForEachWindow(g, [&](const Window& window, const auto& strip) HWY_ATTR {
    const FloatVector count = hn::Set(d, static_cast<float>(window.size()));
    for (int v = 0; v < strip.kVectors; ++v) {
      FloatVector sum = hn::Zero(d);
      ForEachPosition(g, window,
                      [&](int64_t offset, int32_t) HWY_ATTR { sum = hn::Add(sum, strip.Load(x + offset, v)); });
      strip.Store(hn::Div(sum, count), y + window.output, v);
    }
  });
}

void AverageGradient(const WindowGeometry& g, const float* dy, float* dx) {
  const Floats d;
  const bool add = !Disjoint(g);
  ClearUnlessCovered(g, dx);
  ForEachWindow(g, [&](const Window& window, const auto& strip) HWY_ATTR {
    const FloatVector count = hn::Set(d, static_cast<float>(window.size()));
    for (int v = 0; v < strip.kVectors; ++v) {
      const FloatVector part = hn::Div(strip.Load(dy + window.output, v), count);
      ForEachPosition(g, window, [&](int64_t offset, int32_t) HWY_ATTR {
        strip.Store(add ? hn::Add(strip.Load(dx + offset, v), part) : part, dx + offset, v);
      });
    }
  });
}

void RowsMean(int64_t rows, int64_t columns, const float* x, float* y) {
  const FloatVector count = hn::Set(Floats(), static_cast<float>(rows));
  ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
    constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
    StripVectors<kVectors> sum = ZeroStrip<kVectors>();
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum.vectors[v] = hn::Add(sum[v], strip.Load(x + row * columns, v));
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) strip.Store(hn::Div(sum[v], count), y, v);
  });
}

void RowsMeanGradient(int64_t rows, int64_t columns, const float* dy, float* dx) {
  const FloatVector count = hn::Set(Floats(), static_cast<float>(rows));
  ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
    constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
    StripVectors<kVectors> part = LoadStrip(strip, dy);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) part.vectors[v] = hn::Div(part[v], count);
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) strip.Store(part[v], dx + row * columns, v);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(MaxPool);
HWY_EXPORT(MaxGradient);
HWY_EXPORT(AveragePool);
HWY_EXPORT(AverageGradient);
HWY_EXPORT(RowsMean);
HWY_EXPORT(RowsMeanGradient);

void MaxPoolImage(const WindowGeometry& geometry, const float* x, int32_t* winners, float* y) {
  HWY_DYNAMIC_DISPATCH(MaxPool)(geometry, x, winners, y);
}
void AveragePoolImage(const WindowGeometry& geometry, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(AveragePool)(geometry, x, y);
}
void MaxPoolGradient(const WindowGeometry& geometry, const int32_t* winners, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(MaxGradient)(geometry, winners, dy, dx);
}
void AveragePoolGradient(const WindowGeometry& geometry, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(AverageGradient)(geometry, dy, dx);
}

void MeanOfRows(int64_t rows, int64_t columns, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(RowsMean)(rows, columns, x, y);
}
void MeanOfRowsGradient(int64_t rows, int64_t columns, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(RowsMeanGradient)(rows, columns, dy, dx);
}

}  // namespace lockstep
#endif  // HWY_ONCE
