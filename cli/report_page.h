// The page of `shunt report`: one HTML file that needs nothing else. Its own parts stand in cli/report/. Any thread.
#pragma once

#include <string>

#include "output.h"
#include "shunt/trace.h"

namespace shunt::cli {

// `facts`: what the page says besides its timeline; it reads what `shunt report --json` prints.
[[nodiscard]] std::string report_page(Json facts, const trace::Recording& recording);

// Whether this build has the library that draws its charts.
[[nodiscard]] bool has_charts();

}  // namespace shunt::cli
