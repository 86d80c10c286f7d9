#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Returns a configuration from bits: skip damaged lines (1), no header line (2), semicolons (4), targets instead of
// classes (8), weights (16), a range (32), statistics and categories from the file (64), a fraction of the rows (128).
config::v1::InputConfig Configuration(uint8_t bits) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  if (bits & 1) config.set_on_damage(config::v1::InputConfig::SKIP_AND_COUNT);
  auto* const split = config.add_split();
  split->set_name("train");
  auto* const csv = split->mutable_csv();
  csv->add_file("f");
  csv->set_no_header((bits & 2) != 0);
  if (bits & 4) csv->set_separator(";");
  const auto add = [csv](const char* name, config::v1::InputConfig::Csv::Type type) {
    auto* const column = csv->add_column();
    column->set_name(name);
    column->set_type(type);
    return column;
  };
  if (bits & 32) {
    add("a", config::v1::InputConfig::Csv::FLOAT)->set_count(2);
  } else {
    add("a", config::v1::InputConfig::Csv::FLOAT);
    add("b", config::v1::InputConfig::Csv::INT);
  }
  add("y", (bits & 8) ? config::v1::InputConfig::Csv::TARGET : config::v1::InputConfig::Csv::LABEL);
  auto* const category = add("c", config::v1::InputConfig::Csv::CATEGORY);
  if (bits & 64) {
    csv->mutable_column(0)->set_standardize(true);
    csv->mutable_column(0)->mutable_missing()->set_mean(true);
    category->set_one_hot(true);
    category->mutable_missing()->set_skip(true);
  } else {
    category->add_category("red");
    category->add_category("a,\"b\"");
  }
  if (bits & 128) config.set_test_fraction(0.25);
  if (bits & 16) add("w", config::v1::InputConfig::Csv::WEIGHT);
  return config;
}

bool Run(absl::string_view input) {
  FuzzInput in(input);
  const config::v1::InputConfig& config = Kept<Configuration>(in.TakeByte());
  if (IsCompressed(in.rest())) return false;
  MemoryFileSystem fs;
  PutFile(&fs, "f", in.rest());
  return ReadWholeDataset(&fs, config);
}

std::vector<std::string> Seeds() {
  const std::string byte_order_mark = "\xEF\xBB\xBF";
  return {std::string(1, '\0') + "a,b,y,c\n1.5,2,0,red\n-1e3,-7,1,\"a,\"\"b\"\"\"\n",
          std::string(1, '\x02') + "1,2,0,red\r\n\r\n+2,3,4,\"red\"",
          std::string(1, '\x01') + byte_order_mark + " c ,skipped,y,b,a\nred,\"x\ny\",1,2,3\nblue,,1,2,3\nred,\"",
          std::string(1, '\x20') + "y,a,b,c\n0,1,2,red\n",
          std::string(1, '\x1d') + "a;b;y;c;w\n1;2;3.25;red;0.5\n1;2;3;red;-1\n",
          std::string(1, '\x41') + "a,b,y,c\n1.5,2,yes,red\nNA,3,no,\"blue\"\n3,4,no,\n,5,yes, green \n",
          std::string(1, '\xc0') + "a,b,y,c\n1,2,0,red\n2,2,1,red\n3,2,0,red\n4,2,1,red\n",
          std::string(1, '\0') + std::string("\xFF\xFE"
                                             "a\0,\0b\0,\0y\0,\0c\0\n\0"
                                             "1\0,\0"
                                             "2\0,\0"
                                             "0\0,\0r\0e\0d\0",
                                             36)};
}

const FuzzTarget kTarget({"csv", 4 << 20, 300, Run, Seeds});

}  // namespace
}  // namespace lockstep
