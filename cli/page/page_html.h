#ifndef LOCKSTEP_CLI_PAGE_PAGE_HTML_H_
#define LOCKSTEP_CLI_PAGE_PAGE_HTML_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// page.html: the whole page, which loads nothing but state.json.
extern const absl::string_view kPageHtml;

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_PAGE_HTML_H_
