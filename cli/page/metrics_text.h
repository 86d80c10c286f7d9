#ifndef LOCKSTEP_CLI_PAGE_METRICS_TEXT_H_
#define LOCKSTEP_CLI_PAGE_METRICS_TEXT_H_

#include <string>

#include "lockstep/cli/page/run_view.h"

namespace lockstep {

// The content type of MetricsText.
extern const char kMetricsType[];

// Returns a run's metrics in Prometheus' text format, version 0.0.4. docs/observe.md lists them. Before the chief's
// first reply, returns only the view's own metrics.
std::string MetricsText(const RunView::Facts& facts);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_METRICS_TEXT_H_
