#ifndef LOCKSTEP_TESTS_SIMULATION_FAULTS_H_
#define LOCKSTEP_TESTS_SIMULATION_FAULTS_H_

#include <functional>
#include <vector>

#include "lockstep/tests/simulation/plan.h"

namespace lockstep {
namespace simulation {

class Life;

// A kind of fault that can strike the processes of a life. To add one, add a row to the table in faults.cc.
struct FaultKind {
  const char* name;
  // Relative frequency with which the fault is drawn.
  int weight;
  // The point at which the fault strikes most often.
  Point often_at;
  bool (*applies)(const Plan& plan);
  // Called between turns. The effects end by themselves, or when Life::Calm is called.
  void (*strike)(Life* life);
};

const std::vector<FaultKind>& Faults();

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_FAULTS_H_
