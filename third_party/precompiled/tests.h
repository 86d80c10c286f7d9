// Headers that tests include in addition to libraries.h.
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
