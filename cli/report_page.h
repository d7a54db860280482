// The page of `shunt report`: one self-contained HTML file, assembled from cli/report/. Any thread.
#pragma once

#include <string>

#include "output.h"
#include "shunt/trace.h"

namespace shunt::cli {

// Returns the page. `facts` is what `shunt report --json` prints; the timeline is added from the recording.
[[nodiscard]] std::string report_page(Json facts, const trace::Recording& recording);

// Whether this build has the library that draws its charts.
[[nodiscard]] bool has_charts();

}  // namespace shunt::cli
