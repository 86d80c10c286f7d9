#ifndef LOCKSTEP_TRAIN_EVALUATION_CLASS_REPORT_H_
#define LOCKSTEP_TRAIN_EVALUATION_CLASS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/worker/evaluation/metric.h"

namespace lockstep {

// The quality of a model's answers for each class, from a confusion matrix.
struct ClassReport {
  struct Class {
    // The name of the class. Empty if classes have no names.
    std::string name;
    // The number of examples with this label, of those among them that got this answer, and of all that got it.
    int64_t examples = 0;
    int64_t correct = 0;
    int64_t answers = 0;
    // Each returns a ratio: correct / answers, correct / examples, and their harmonic mean; NaN if the divisor is 0.
    double precision() const;
    double recall() const;
    double f1() const;
  };
  std::vector<Class> classes;
  // Counts, row-major. A row is a label, a column an answer.
  std::vector<int64_t> matrix;
};

// Computes the report of `matrix`, the value of the metric "confusion_matrix".
ClassReport ReportClasses(const MetricValue& matrix, const std::vector<std::string>& names);

// Returns a table with one row for each class, then the mean over classes, each of which counts once.
std::string ClassReportText(const ClassReport& report);

// Returns the report for programs: a header line, then "class,name,examples,precision,recall,f1,as_0,as_1,..." for each
// class. An undefined number is empty.
std::string ClassReportCsv(const ClassReport& report);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_CLASS_REPORT_H_
