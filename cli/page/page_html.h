#ifndef LOCKSTEP_CLI_PAGE_PAGE_HTML_H_
#define LOCKSTEP_CLI_PAGE_PAGE_HTML_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// The contents of page.html. The page loads only state.json.
extern const absl::string_view kPageHtml;

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_PAGE_HTML_H_
