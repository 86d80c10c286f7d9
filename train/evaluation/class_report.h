#ifndef LOCKSTEP_TRAIN_EVALUATION_CLASS_REPORT_H_
#define LOCKSTEP_TRAIN_EVALUATION_CLASS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/worker/evaluation/metric.h"

namespace lockstep {

// The quality of a model's answers per class, computed from a confusion matrix.
struct ClassReport {
  struct Class {
    // The class name. Empty if classes have no names.
    std::string name;
    // Number of examples with this label, number of those that the model assigned to this class, and number of all
    // examples that it assigned to this class.
    int64_t examples = 0;
    int64_t correct = 0;
    int64_t answers = 0;
    // Return correct / answers, correct / examples, and the harmonic mean of the two. NaN if the divisor is 0.
    double precision() const;
    double recall() const;
    double f1() const;
  };
  std::vector<Class> classes;
  // Row-major counts: one row per label, one column per answer.
  std::vector<int64_t> matrix;
};

// Computes the report from `matrix`, the value of the metric "confusion_matrix".
ClassReport ReportClasses(const MetricValue& matrix, const std::vector<std::string>& names);

// Returns a table with one row per class, followed by the unweighted mean over the classes.
std::string ClassReportText(const ClassReport& report);

// Returns a machine-readable report: the header line "class,name,examples,precision,recall,f1,as_0,as_1,...", followed
// by one line per class. Undefined numbers are empty.
std::string ClassReportCsv(const ClassReport& report);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_CLASS_REPORT_H_
