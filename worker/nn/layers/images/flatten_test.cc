#include "lockstep/worker/nn/layers/images/flatten.h"

#include "gtest/gtest.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

TEST(FlattenTest, IsAViewOfAllElementsAsOneVector) {
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{60}, Shape{4, 15}}) {
    const LayerRunner runner(MakeFlatten, "name: 'x' flatten {}", {shape}, {});
    EXPECT_TRUE(runner.op().is_view());
    EXPECT_EQ(runner.op().output_shape(), Shape{60});
    EXPECT_EQ(runner.spec().variables_size(), 0);
  }
  EXPECT_EQ(LayerRunner(MakeFlatten, "name: 'x' flatten {}", {Shape{}}, {}).op().output_shape(), Shape{1});
}

}  // namespace
}  // namespace lockstep
