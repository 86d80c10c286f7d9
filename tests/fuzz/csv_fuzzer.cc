#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// A configuration of bits: a header line, targets in place of classes, damaged lines left out, a semicolon, a range.
config::v1::InputConfig Configuration(uint8_t bits) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  if (bits & 1) config.set_on_damage(config::v1::InputConfig::SKIP_AND_COUNT);
  auto* const split = config.add_split();
  split->set_name("train");
  auto* const csv = split->mutable_csv();
  csv->set_file("f");
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
  category->add_category("red");
  category->add_category("a,\"b\"");
  if (bits & 16) add("w", config::v1::InputConfig::Csv::WEIGHT);
  return config;
}

bool Run(absl::string_view input) {
  FuzzInput in(input);
  const config::v1::InputConfig& config = Kept<Configuration>(in.TakeByte());
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
          std::string(1, '\x1d') + "a;b;y;c;w\n1;2;3.25;red;0.5\n1;2;3;red;-1\n"};
}

const FuzzTarget kTarget({"csv", 4 << 20, 300, Run, Seeds});

}  // namespace
}  // namespace lockstep
