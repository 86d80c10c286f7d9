#ifndef LOCKSTEP_TESTS_SIMULATION_FAULTS_H_
#define LOCKSTEP_TESTS_SIMULATION_FAULTS_H_

#include <functional>
#include <vector>

#include "lockstep/tests/simulation/plan.h"

namespace lockstep {
namespace simulation {

class Life;

// Something that happens to the processes of a life. To add one: a row in the table of faults.cc.
struct FaultKind {
  const char* name;
  // How often it is drawn, relative to the others.
  int weight;
  // Where it strikes more often than elsewhere.
  Point often_at;
  bool (*applies)(const Plan& plan);
  // Between turns. What it does ends by itself, or with Life::Calm.
  void (*strike)(Life* life);
};

const std::vector<FaultKind>& Faults();

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_FAULTS_H_
