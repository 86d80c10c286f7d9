// libraries.h and the headers that tests include.
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "third_party/precompiled/libraries.h"
