// Prints all metrics of a page, for promtool (deploy/prometheus/promtool_test.sh).
#include <iostream>

#include "lockstep/cli/page/metrics_text.h"
#include "lockstep/cli/page/testing/example_facts.h"

int main() { std::cout << lockstep::MetricsText(lockstep::ExampleFacts()); }
