#include "lockstep/worker/nn/layers/reshape.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

TEST(ReshapeTest, IsAViewOfTheSameElements) {
  const struct {
    const char* shape;
    Shape input, output;
  } kCases[] = {{"shape: 4 shape: 15", {3, 4, 5}, {4, 15}},
                {"shape: 28 shape: 28 shape: 1", {784}, {28, 28, 1}},
                {"shape: -1 shape: 5", {3, 4, 5}, {12, 5}},
                {"shape: 60 shape: -1", {3, 4, 5}, {60, 1}},
                {"shape: -1", {3, 4}, {12}},
                {"", {1}, {}}};
  for (const auto& test : kCases) {
    const LayerRunner runner(MakeReshape, absl::StrCat("name: 'x' reshape { ", test.shape, " }"), {test.input}, {});
    EXPECT_TRUE(runner.op().is_view());
    EXPECT_EQ(runner.op().output_shape(), test.output) << test.shape;
    EXPECT_EQ(runner.spec().variables_size(), 0);
  }
}

TEST(ReshapeTest, AnotherNumberOfElementsIsAnError) {
  const auto error = [](const std::string& shape) {
    const absl::Status status = LayerStatus(MakeReshape, "name: 'x' reshape { " + shape + " }", {Shape{3, 4}});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(error("shape: 5 shape: 2"),
            "layer 'x': the input [3,4] has 12 elements, which do not make the shape [5,2]");
  EXPECT_EQ(error("shape: -1 shape: 5"),
            "layer 'x': the input [3,4] has 12 elements, which do not make the shape [-1,5]");
  EXPECT_EQ(error("shape: 0"), "layer 'x': the output would have a dimension of 0");
  EXPECT_EQ(error("shape: -1 shape: -1"), "layer 'x': the output would have a dimension of -1");
}

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
