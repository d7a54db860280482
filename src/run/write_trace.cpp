#include "shunt/runtime.h"
#include "shunt/trace.h"
#include "trace/chrome.h"
#include "trace/text_file.h"

namespace shunt {

Status Runtime::write_trace(const std::string& path) const {
  return trace::write_text_file(path, to_chrome_json(recording()));
}

}  // namespace shunt
