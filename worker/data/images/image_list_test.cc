#include "lockstep/worker/data/images/image_list.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Put(MemoryFileSystem* fs, const std::string& path) {
  ASSERT_EQ(fs->CreateDirectory(std::string(Dirname(path))), absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically(fs, path, "x"), absl::OkStatus());
}

std::vector<std::string> Names(const ImageList& list) {
  std::vector<std::string> names;
  for (const ImageFile& file : list.files) names.push_back(file.name + " " + std::to_string(file.label));
  return names;
}

TEST(ImageListTest, ClassesAndFilesAreSorted) {
  MemoryFileSystem fs;
  for (const char* path : {"/p/b/2.png", "/p/b/10.JPG", "/p/a/x.jpeg", "/p/a/.hidden.png", "/p/a/notes.txt",
                           "/p/.git/c.png", "/p/readme.md", "/p/a/old.gif"}) {
    Put(&fs, path);
  }
  const ImageList list = ListImages(&fs, "/p", {}, false).value();
  EXPECT_THAT(list.classes, ElementsAre("a", "b"));
  EXPECT_THAT(Names(list), ElementsAre("a/old.gif 0", "a/x.jpeg 0", "b/10.JPG 1", "b/2.png 1"));
  EXPECT_THAT(Names(ListImages(&fs, "/p", {"b", "none", "a"}, false).value()),
              ElementsAre("b/10.JPG 0", "b/2.png 0", "a/old.gif 2", "a/x.jpeg 2"));
}

TEST(ImageListTest, AFolderOfImagesIsForPredictions) {
  MemoryFileSystem fs;
  Put(&fs, "/p/1.png");
  const ImageList list = ListImages(&fs, "/p", {"a"}, true).value();
  EXPECT_THAT(Names(list), ElementsAre("1.png 0"));
  EXPECT_TRUE(list.classes.empty());
  EXPECT_THAT(std::string(ListImages(&fs, "/p", {}, false).status().message()),
              HasSubstr("expected a folder for each class"));
}

TEST(ImageListTest, RefusesFoldersThatAreNoClass) {
  MemoryFileSystem fs;
  Put(&fs, "/p/zebra/1.png");
  EXPECT_THAT(std::string(ListImages(&fs, "/p", {"ant", "bee"}, false).status().message()),
              HasSubstr("/p/zebra is the folder of no class; the classes are ant, bee"));
  Put(&fs, "/q/a/deep/1.png");
  EXPECT_THAT(std::string(ListImages(&fs, "/q", {}, false).status().message()), HasSubstr("/q/a/deep is a folder"));
}

TEST(ImageListTest, AFolderWithoutImagesIsNoClassUnasked) {
  MemoryFileSystem fs;
  Put(&fs, "/p/a/1.png");
  Put(&fs, "/p/b/notes.txt");
  EXPECT_THAT(std::string(ListImages(&fs, "/p", {}, false).status().message()),
              HasSubstr("/p has folders without images: b; remove them, or list"));
  EXPECT_THAT(ListImages(&fs, "/p", {"a", "b"}, false).value().classes, ElementsAre("a", "b"));
}

TEST(ImageListTest, SaysThatImagesAreMissing) {
  MemoryFileSystem fs;
  Put(&fs, "/p/a/notes.txt");
  EXPECT_THAT(std::string(ListImages(&fs, "/p", {}, false).status().message()),
              HasSubstr("no images in its 1 folders"));
  EXPECT_THAT(std::string(ListImages(&fs, "/mnt/data", {}, false).status().message()),
              HasSubstr("is a volume to be mounted there?"));
}

}  // namespace
}  // namespace lockstep
